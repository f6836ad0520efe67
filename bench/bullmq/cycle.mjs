// SPDX-License-Identifier: MIT
// BullMQ as its documentation uses it: jobs added in bulk, one worker of so many at once, finished ones kept as
// musterd keeps them. cycle.mjs PORT JOBS BYTES CONCURRENCY; prints one JSON object.
import { Queue, Worker } from "bullmq";

const [port, jobs, bytes, concurrency] = process.argv.slice(2).map(Number);
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const BULK = 100;
const queue = new Queue("bench", { connection });
const data = { payload: "x".repeat(bytes) };
const options = { priority: 5, removeOnComplete: 1000, removeOnFail: 1000 };

let begun = performance.now();
const adding = [];
for (let i = 0; i < jobs; i += BULK) {
  const bulk = Array.from({ length: Math.min(BULK, jobs - i) }, () => ({ name: "t", data, opts: options }));
  adding.push(queue.addBulk(bulk));
  if (adding.length >= 10) await Promise.all(adding.splice(0));
}
await Promise.all(adding);
const submitted = (performance.now() - begun) / 1000;

begun = performance.now();
let done = 0;
const worker = new Worker("bench", async () => {}, { connection, concurrency });
await new Promise((resolve) => worker.on("completed", () => { if (++done === jobs) resolve(); }));
const worked = (performance.now() - begun) / 1000;
console.log(JSON.stringify({ jobs, submit_seconds: submitted, work_seconds: worked }));
await worker.close();
await queue.close();
