#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Prints the notices of a department and all below it: supervisor_consumer.py DEPARTMENT [--fail]

Notices come at least once: a redelivered one is known by the id of each of its events. A message that is rejected
comes back after 5 s, 30 s and 5 min, and is then parked (`muster parked`, `muster replay`); with --fail every
message is rejected the first time, to see that."""
import json
import os
import sys

import pika


def connect():
    get = os.environ.get
    return pika.BlockingConnection(pika.ConnectionParameters(
        get("AMQP_HOST", "127.0.0.1"), int(get("AMQP_PORT", "5672")), get("AMQP_VHOST", "/"),
        pika.PlainCredentials(get("AMQP_USER", "guest"), get("AMQP_PASSWORD", "guest"))))


def consume(department, fail_first):
    channel = connect().channel()
    queue = f"supervisor.{department}"
    channel.queue_declare(queue, durable=True, arguments={
        "x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "muster.dead"})
    # attendance.<what>.<dept>, and .sub behind it for departments below: '#' takes both.
    channel.queue_bind(queue, "muster.notices", f"attendance.*.{department}.#")
    seen = set()  # a real consumer keeps these where its results are

    def on_message(_channel, method, properties, body):
        attempt = (properties.headers or {}).get("x-muster-attempt", 0)
        if fail_first and not attempt:
            print(f"rejected {properties.message_id}", flush=True)
            channel.basic_reject(method.delivery_tag, requeue=False)
            return
        notice = json.loads(body)
        for event in notice["events"]:
            if event["id"] not in seen:
                seen.add(event["id"])
                print(notice["type"], notice["day"], notice["dept"], event.get("employee", ""), flush=True)
        channel.basic_ack(method.delivery_tag)

    channel.basic_qos(prefetch_count=100)
    channel.basic_consume(queue, on_message)
    channel.start_consuming()


consume(sys.argv[1], "--fail" in sys.argv[2:])
