import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { commands } from '../../src/cli/commands/index.ts'
import { run } from '../../src/cli/run.ts'
import type { Command, CommandGroup } from '../../src/cli/shared/command.ts'
import { flagName } from '../../src/cli/shared/flags.ts'
import { freePort } from '../support/free-port.ts'
import { finish } from './program.ts'

const { version } = createRequire(import.meta.url)('../../package.json')

const everyCommand = commands.flatMap((each): [path: string, command: Command][] =>
  'commands' in each ? each.commands.map((one) => [`${each.name} ${one.name}`, one]) : [[each.name, each]],
)

describe('--help', () => {
  test('of the program names every command and explains the exit codes', async () => {
    const { code, output, errors } = await finish(['--help'])
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    const listed = output.replace(/\n {5,}/g, ' ')
    for (const { name, summary } of commands) expect(listed).toMatch(new RegExp(`^  ${name} +${summary}$`, 'm'))
    expect(output).toMatch(/^ {2}2 +invalid command line$/m)
    for (const same of ['-h', 'help']) expect(await finish([same])).toEqual({ code, output, errors })
  })

  test.each(
    commands.filter((each): each is CommandGroup => 'commands' in each).map((each) => [each.name, each] as const),
  )('of %s names its commands', async (name, group) => {
    const { code, output } = await finish([name, '--help'])
    expect(code).toBe(0)
    for (const each of group.commands) expect(output).toContain(`  ${each.name} `)
  })

  test.each([['emulate'], ['keys'], ['keys', 'create']])('is what help %s %s prints', async (...path) => {
    const help = await finish([...path, '--help'])
    expect(await finish(['help', ...path])).toEqual(help)
    expect(help.code).toBe(0)
  })

  test.each(everyCommand)(
    'of %s has every flag, the exit codes, and examples of the command',
    async (path, command) => {
      const { code, output } = await finish([...path.split(' '), '--help'])
      expect(code).toBe(0)
      for (const name of [...Object.keys(command.flags), 'json', 'help'])
        expect(output).toContain(`  ${flagName(name)}`)
      expect(output).toMatch(/^Exit codes:\n {2}0 +\S/m)
      expect(output).not.toContain('undefined')
      const [explained = '', examples = ''] = output.split(/\nExamples?:\n/)
      for (const example of examples.trimEnd().split('\n')) {
        expect(example).toMatch(new RegExp(`^  npx media-webhooks ${path}\\b`))
      }
      // Lines to copy may be longer.
      expect(explained.split('\n').filter((line) => line.length > 100 && !line.startsWith('Usage:'))).toEqual([])
    },
  )
})

describe('Without a command', () => {
  test.each([[[]], [['keys']]])('%j prints the help on standard error, and exits with 2', async (args) => {
    const { output: help } = await finish([...args, '--help'])
    expect(await finish(args)).toEqual({ code: 2, output: '', errors: help })
  })
})

test.each([
  [20, 60],
  [72, 72],
  [200, 100],
])('on a terminal of %d columns, the help is at most %d wide', async (columns, widest) => {
  let output = ''
  const stdout = { isTTY: true, columns, write: (text: string) => (output += text) }
  const { signal } = new AbortController()
  await run(['emulate', '--help'], { stdout, stderr: stdout, stdin: Readable.from([]), env: {}, signal })
  const [explained = ''] = output.split('\nExamples:')
  const longest = Math.max(...explained.split('\n').map((line) => line.length))
  expect(longest).toBeGreaterThan(widest - 20)
  expect(longest).toBeLessThanOrEqual(widest)
})

test('a refused connection is followed by the question whether the server runs', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  const triggered = await finish(['trigger', 'file.received', '--to', url, '--time-scale', '0'])
  expect(triggered.output).toMatch(/ECONNREFUSED \(is the server running, /)
  const listed = await finish(['keys', 'list', '--base-url', url, '--access-token', 'a-token'])
  expect(listed.errors).toMatch(/ECONNREFUSED.* \(is the server running, /)
})

describe('The program', () => {
  test('prints its version', async () => {
    for (const flag of ['--version', '-v']) {
      expect(await finish([flag])).toEqual({ code: 0, output: `${version}\n`, errors: '' })
    }
  })

  test.each([
    [['emualte'], /there is no command 'emualte'; did you mean 'emulate'\?/],
    [['something'], /there is no command 'something' \(see 'npx media-webhooks --help'\)/],
    [['--port', '1'], /flags come after the command/],
    [['keys', 'crate'], /did you mean 'create'\?/],
    [['keys', 'update', 'an-id'], /there is no command 'update'; did you mean 'rename'\?/],
    [['help', 'emualte'], /did you mean 'emulate'\?/],
    [['listen', '--prot', '1'], /there is no flag --prot; did you mean '--port'\?/],
    [['listen', '--port'], /--port takes <n>/],
    [['listen', '--port', '--json'], /--port takes <n>; write a value that begins with a dash as --port=-…/],
    [['listen', '--port', '65536'], /--port takes a whole number from 0 to 65535/],
    [['listen', '--json=yes'], /--json takes no value/],
    [['listen', 's3cret'], /too many arguments: the command takes none/],
    [['doctor', 'http://a/', 's3', 'cret'], /the command takes <url> \(put quotes around a text with spaces\)/],
    [['listen', '--verify', 'hmac'], /--verify takes one of url-token, header-token/],
    [['listen', '--time', 'time'], /--time goes with --verify timestamped-signature/],
    [
      ['trigger', 'file.received', '--to', 'http://a/', '--sign', 'timestamped-signature', '--secret', 's3cret'],
      /needs --header/,
    ],
    [['listen', '--header', 'x-a'], /--header goes with --verify header-token, hmac-signature/],
    [['doctor'], /<url> is missing/],
    [['doctor', 'ftp://s3cret@example.com'], /<url> takes an http or https URL/],
    [['doctor', 'http://a/', '--secret', 's3cret'], /--secret goes with --verify url-token, /],
    [
      ['doctor', 'http://a/', '--verify', 'url-token'],
      /--verify url-token needs --secret <text> \(or MEDIA_WEBHOOKS_SE/,
    ],
    [
      ['doctor', 'http://a/', '--verify', 'url-token', '--secret', 's3cret\n'],
      /urlToken: secret 1 of 1 begins or ends/,
    ],
    [['doctor', 'http://a/', '--verify', 'url-token', '--secret='], /--secret is empty \(is a variable unset\?\)/],
    [['doctor', 'http://a/', '--verify', 'url-token', '--secret', 's3cret', '--algorithm', 'sha1'], /not url-token/],
    [['doctor', 'http://a/', '--verify', 'standard-webhooks', '--secret', 's3cret'], /a secret must be base64/],
    [['trigger', 'encoding.finish', '--to', 'http://a/'], /did you mean 'encoding\.finished'\?/],
    [['trigger', 'file.received'], /--to <url> is missing/],
    [['trigger', 'file.received', '--to', 'http://a/', '--fails'], /--fails goes with lifecycle/],
    [
      ['trigger', 'lifecycle', '--to', 'http://a/', '--time-scale', 'fast'],
      /--time-scale takes a number from 0 to 1000, such as 0\.1/,
    ],
    [['emulate', '--profile', 'seen'], /--profile takes one of documented, observed/],
    [['emulate', '--port', '0', '--time-scale', '1001'], /: --time-scale takes a number from 0 to 1000/],
    [['emulate', '--port', '0', '--secret-key', 's3 cret'], /: --secret-key must be printable ASCII/],
  ])('exits with 2 for %j, and says why in one line', async (args, message) => {
    const { code, output, errors } = await finish(args)
    expect({ code, output }).toEqual({ code: 2, output: '' })
    expect(errors).toMatch(message)
    expect(errors).toMatch(/^media-webhooks: [^\n]+\n$/)
    expect(errors).not.toMatch(/s3 ?cret/)
  })

  test('reads the secret from the environment, even for a scheme that does not need one', async () => {
    const env = { MEDIA_WEBHOOKS_SECRET: 's3cret' }
    const { code } = await finish(['doctor', 'http://127.0.0.1:1/', '--verify', 'unverified'], env)
    expect(code).toBe(1)
    const empty = await finish(['doctor', 'http://a/', '--verify', 'url-token'], { MEDIA_WEBHOOKS_SECRET: '' })
    expect(empty.errors).toContain('needs --secret')
  })

  test('uses colours on a terminal, unless NO_COLOR is set', async () => {
    const outputOf = async (isTTY: boolean, env: Record<string, string> = {}) => {
      let output = ''
      const stdout = { isTTY, write: (text: string) => (output += text) }
      const { signal } = new AbortController()
      await run(['doctor', 'http://127.0.0.1:1/'], { stdout, stderr: stdout, stdin: Readable.from([]), env, signal })
      return output
    }
    expect(await outputOf(true)).toContain('\u001b[31m')
    expect(await outputOf(true, { NO_COLOR: '1' })).not.toContain('\u001b')
    expect(await outputOf(false)).not.toContain('\u001b')
  })
})

test('the help of an action has only its flags, and a wrong flag leads to it', async () => {
  for (const line of [
    ['inbox', 'events.db', 'stop', '--help'],
    ['inbox', 'stop', '-h'],
    ['help', 'inbox', 'stop'],
  ]) {
    const { code, output } = await finish(line)
    expect(code).toBe(0)
    expect(output).toMatch(/^Usage: media-webhooks inbox <target> stop <key> \[options\]\n\nStops the running handler /)
    expect(output.match(/^ {2}--[a-z-]+/gm)?.map((flag) => flag.trim())).toEqual(
      ['target', 'schema', 'queue', 'reason', 'json', 'help'].map((name) => `--${name}`),
    )
  }
  const { code, errors } = await finish(['inbox', 'events.db', 'stop', 'a', '--all'])
  expect([code, errors]).toEqual([
    2,
    "media-webhooks: stop does not take --all (see 'npx media-webhooks inbox stop --help')\n",
  ])
})
