#!/usr/bin/env bash
# The whole soak: what computes runs beside what waits for processes and disks.
set -uo pipefail

npm run soak -- fuzz simulation &
computing=$!
npm run soak -- sqlite bullmq postgres durable-object memory
failed=$?
wait "$computing" && exit "$failed"
