import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEmulator, type Emulator } from '../../src/service/emulator/index.ts'
import { serveWebhook } from '../support/serve.ts'
import { finish, start } from './program.ts'

let emulator: Emulator
let credentials: Record<string, string>
beforeAll(async () => {
  emulator = await createEmulator()
  credentials = { MEDIA_WEBHOOKS_BASE_URL: emulator.url, MEDIA_WEBHOOKS_ACCESS_TOKEN: emulator.credentials.accessToken }
})
afterAll(() => emulator.close())

const url = 'https://example.com/webhooks/media?token=s3cret'
const create = ['webhooks', 'create', '--events', 'all', '--json']
const typed = (...chunks: string[]) => Readable.from(chunks)

/** Returns the URL of the webhook that a command has printed. */
async function urlOf(output: string) {
  const { id } = JSON.parse(output).webhook
  const shown = await finish(['webhooks', 'get', id, '--reveal', '--json'], credentials)
  return JSON.parse(shown.output).webhook.url
}

describe('a URL that contains a secret', () => {
  test('is taken from the environment', async () => {
    const { code, output } = await finish(create, { ...credentials, MEDIA_WEBHOOKS_URL: url })
    expect(code).toBe(0)
    expect(await urlOf(output)).toBe(url)
  })

  test.each([
    ['a dash in its place', ['--url', '-']],
    ['a dash after an equals sign', ['--url=-']],
  ])('is read from standard input, given %s', async (_, flags) => {
    const { code, output } = await finish(
      [...create, ...flags],
      credentials,
      typed(' https://example.com/', 'webhooks/media?token=s3cret\r\nmore'),
    )
    expect(code).toBe(0)
    expect(await urlOf(output)).toBe(url)
  })

  test('of a webhook is changed to the one on standard input, and never to the one in the environment', async () => {
    const created = await finish([...create, '--url', 'https://example.com/old'], credentials)
    const { id } = JSON.parse(created.output).webhook
    await finish(['webhooks', 'update', id, '--name', 'renamed'], { ...credentials, MEDIA_WEBHOOKS_URL: url })
    expect(await urlOf(created.output)).toBe('https://example.com/old')
    expect((await finish(['webhooks', 'update', id, '--url', '-'], credentials, typed(url))).code).toBe(0)
    expect(await urlOf(created.output)).toBe(url)
  })

  test.each([
    ['the environment', [], { env: true }],
    ['standard input', ['--to', '-'], { env: false }],
  ])('of the receiver is taken by trigger from %s', async (_, flags, { env }) => {
    const asked: (string | undefined)[] = []
    const receiver = await serveWebhook((request, response) => {
      asked.push(request.url)
      response.end()
    })
    const { code, output } = await finish(
      ['trigger', 'file.received', ...flags],
      env ? { MEDIA_WEBHOOKS_URL: `${receiver}?token=s3cret` } : {},
      typed(`${receiver}?token=s3cret\n`),
    )
    expect(code).toBe(0)
    expect(asked).toEqual([expect.stringMatching(/\?token=s3cret$/)])
    expect(output).not.toContain('s3cret')
  })

  test('is not printed if it is wrong', async () => {
    for (const [env, stdin] of [
      [{ MEDIA_WEBHOOKS_URL: 'ftp://s3cret' }],
      [{}, typed('s3cret\n')],
      [{}, typed()],
    ] as const) {
      const flags = stdin === undefined ? [] : ['--to', '-']
      const { code, errors } = await finish(['trigger', 'file.received', ...flags], env, stdin)
      expect(code).toBe(2)
      expect(errors).toMatch(/^media-webhooks: (--to|MEDIA_WEBHOOKS_URL) takes an http or https URL, .*\n$/)
      expect(errors).not.toContain('s3cret')
    }
  })

  test('is asked for on a terminal, and Ctrl-C ends the program instead', async () => {
    const stdin = Object.assign(new Readable({ read() {} }), { isTTY: true })
    const program = start(['trigger', 'file.received', '--to', '-'], {}, stdin)
    expect(program.errors()).toBe('Paste the value, and press Enter.\n')
    program.interrupt()
    expect(await program.code).toBe(130)
    expect(stdin.destroyed).toBe(true)
  })

  test.each([['trigger'], ['webhooks', 'create']])(
    'can be kept off the command line, as the help of %s %s says',
    async (...path) => {
      const output = (await finish([...path, '--help'])).output.replace(/\s+/g, ' ')
      expect(output).toContain('(or MEDIA_WEBHOOKS_URL, or - for standard input)')
      expect(output).toContain('Other users of this machine can see the command line.')
    },
  )
})
