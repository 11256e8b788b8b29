#!/usr/bin/env bash
# Runs tests on other versions of Node. On 24 these are all that can differ. On 22 and 26 they are what uses the runtime's
# own modules: servers, files, and the contracts over them.
set -euo pipefail

runtime=(test/contract/adapter test/contract/inbox-sqlite test/adapters/ test/internal/ test/inbox/sqlite/ test/demo/)
others=(test/contract/ test/events/ test/receiver/ test/handlers/ test/inbox/ test/cli/)

vitest_on() { npx -y -p "node@$1" node node_modules/vitest/vitest.mjs run "${@:2}"; }

for version in 22 24 26; do
  folders=("${runtime[@]}")
  if [ "$version" = 24 ]; then folders+=("${others[@]}"); fi
  vitest_on "$version" --project quick --project alone "${folders[@]}"
  # The oldest and the newest that have node:sqlite.
  [ "$version" = 24 ] || vitest_on "$version" --project slow test/contract/adapter test/adapters/fastify test/inbox/sqlite/{opening,reading,failures,locked,lost-lock,power-loss,transactions}
done
