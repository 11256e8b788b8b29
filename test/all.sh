#!/usr/bin/env bash
# What `npm test` leaves out, as two streams: one waits for processes, disks and timers, the other computes.
set -uo pipefail

failed=0
run() { "$@" || { failed=1 && echo "FAILED: $*"; }; }

waits() {
  run npx vitest run --project slow --maxWorkers 4
  run npm run soak -- sqlite bullmq postgres durable-object memory fuzz
  return "$failed"
}

computes() {
  run npx vitest run --project pages --project installed
  run npx vitest run --project frameworks
  run npm run soak -- simulation
  run bash test/nodes.sh
  return "$failed"
}

computes &
waits
wait "$!" || failed=1
exit "$failed"
