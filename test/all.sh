#!/usr/bin/env bash
# What `npm test` leaves out, as two streams: one waits for processes, disks and timers, the other computes.
set -uo pipefail

waits() {
  local failed=0
  npx vitest run --project slow --maxWorkers 4 || failed=1
  npm run soak -- sqlite bullmq postgres durable-object memory fuzz || failed=1
  return "$failed"
}

computes() {
  local failed=0
  npx vitest run --project pages --project installed || failed=1
  npx vitest run --project frameworks || failed=1
  npm run soak -- simulation || failed=1
  bash test/nodes.sh || failed=1
  return "$failed"
}

computes &
failed=0
waits || failed=1
wait "$!" || failed=1
exit "$failed"
