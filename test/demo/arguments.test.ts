import { expect, test } from 'vitest'
import { readArguments } from '../../demo/arguments.ts'

const standard = {
  port: 0,
  emulatorPort: 0,
  inbox: 'memory',
  inboxFile: undefined,
  inboxUrl: undefined,
  exit: false,
  help: false,
}

test('without arguments it uses a free port, keeps events in memory and keeps running', () => {
  expect(readArguments([])).toEqual(standard)
})

test('takes ports and flags', () => {
  expect(readArguments(['--port', '8080', '--exit'])).toEqual({ ...standard, port: 8080, exit: true })
  expect(readArguments(['--port=65535', '--emulator-port', '4010', '--help'])).toEqual({
    ...standard,
    port: 65_535,
    emulatorPort: 4_010,
    help: true,
  })
})

test('takes an inbox and its file', () => {
  expect(readArguments(['--inbox', 'sqlite'])).toEqual({ ...standard, inbox: 'sqlite' })
  expect(readArguments(['--inbox=sqlite', '--inbox-file', 'a.db'])).toMatchObject({ inboxFile: 'a.db' })
  const url = 'postgres://localhost/app'
  expect(readArguments(['--inbox=postgres', '--inbox-url', url])).toMatchObject({ inbox: 'postgres', inboxUrl: url })
})

test.each([
  [['--exti'], "Unknown option '--exti'"],
  [['now'], "Unexpected argument 'now'"],
  [['--port'], "'--port <value>' argument missing"],
  [['--port', 'http'], "--port takes a number from 0 to 65535, not 'http'"],
  [['--port', '65536'], "--port takes a number from 0 to 65535, not '65536'"],
  [['--emulator-port', '-1'], 'argument is ambiguous'],
  [['--emulator-port=x'], "--emulator-port takes a number from 0 to 65535, not 'x'"],
  [['--inbox', 'redis'], "--inbox takes memory, sqlite or postgres, not 'redis'"],
  [['--inbox-file', 'a.db'], '--inbox-file goes with --inbox sqlite'],
  [['--inbox', 'postgres'], '--inbox postgres and --inbox-url postgres://… go together'],
  [['--inbox-url', 'postgres://localhost/app'], '--inbox postgres and --inbox-url postgres://… go together'],
  [['--port='], "--port takes a number from 0 to 65535, not ''"],
])('rejects %j and says why', (args, message) => {
  expect(() => readArguments(args)).toThrow(message)
})
