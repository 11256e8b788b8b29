#!/usr/bin/env bash
# What `npm test` leaves out. Frameworks, the simulation and other versions of Node run beside the rest of the soak, which waits
# for processes and disks.
set -uo pipefail
failed=0

npx vitest run --project slow --project pages --project installed || failed=1

{
  npx vitest run --project frameworks || exit 1
  npm run soak -- simulation || exit 1
  bash test/nodes.sh
} &
npm run soak -- sqlite bullmq postgres durable-object memory fuzz || failed=1
wait "$!" || failed=1
exit "$failed"
