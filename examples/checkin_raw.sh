#!/bin/sh
# SPDX-License-Identifier: MIT
# A check-in with nothing but nc: checkin_raw.sh EMPLOYEE [IN|OUT]
# Muster takes plain lines; replies are RESP, where a map is a list of field, value, each behind its length.
printf 'CHECKIN %s %s\r\nQUIT\r\n' "$1" "${2:-IN}" | nc -N "${MUSTER_HOST:-127.0.0.1}" "${MUSTER_PORT:-7411}"
