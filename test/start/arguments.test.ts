import { expect, test } from 'vitest'
import { readArguments } from '../../start/arguments.ts'

test('without arguments it takes a free port and stays', () => {
  expect(readArguments([])).toEqual({ port: 0, emulatorPort: 0, exit: false, help: false })
})

test('takes ports and flags', () => {
  expect(readArguments(['--port', '8080', '--exit'])).toEqual({ port: 8080, emulatorPort: 0, exit: true, help: false })
  expect(readArguments(['--port=65535', '--emulator-port', '4010', '--help'])).toEqual({
    port: 65_535,
    emulatorPort: 4_010,
    exit: false,
    help: true,
  })
})

test.each([
  [['--exti'], "Unknown option '--exti'"],
  [['now'], "Unexpected argument 'now'"],
  [['--port'], "'--port <value>' argument missing"],
  [['--port', 'http'], "--port takes a number from 0 to 65535, not 'http'"],
  [['--port', '65536'], "--port takes a number from 0 to 65535, not '65536'"],
  [['--emulator-port', '-1'], 'argument is ambiguous'],
  [['--emulator-port=x'], "--emulator-port takes a number from 0 to 65535, not 'x'"],
  [['--port='], "--port takes a number from 0 to 65535, not ''"],
])('refuses %j and says why', (args, message) => {
  expect(() => readArguments(args)).toThrow(message)
})
