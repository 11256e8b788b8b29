import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { toCurl } from '../../../../src/service/emulator/page/curl.ts'

/** Returns the arguments that a shell passes to curl. */
const argumentsOf = (command: string): string[] =>
  execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1)

test('a shell takes every part of a curl command literally', () => {
  const url = "http://127.0.0.1:9/hook?token=a'b$HOME`id`&c=[1-3]{x}"
  const body = '{"title":"It\'s $(id) `id` \\\\ !! \\"quoted\\""}\nnext line'
  const headers = { 'Content-Type': 'application/json', 'X-Token': "'; id; '" }
  expect(argumentsOf(toCurl({ url, headers, body }))).toEqual([
    '--globoff',
    url,
    '-H',
    'Content-Type: application/json',
    '-H',
    "X-Token: '; id; '",
    '--data-raw',
    body,
  ])
})
