import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { nodeHandler } from '../../adapters/node.ts'
import { type MediaEvent, unverified, urlToken } from '../../src/index.ts'
import { type Fault, faults } from '../../src/service/emulator/sending/sending.ts'
import { verifierFor } from '../../src/service/emulator/sending/signing.ts'
import { watchedReceiver } from '../adapters/receivers.ts'
import { serveWebhook } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { finish, start } from './program.ts'
import { named, secretOf } from './schemes.ts'

/** Starts a receiver that handles every event. */
async function receive(verify = unverified()) {
  const events: MediaEvent[] = []
  const { receiver, reports } = watchedReceiver({ verify })
  receiver.onAny((event) => void events.push(event))
  return { url: await serveWebhook(nodeHandler(receiver)), events, reports }
}

async function trigger(type: string, url: string, ...flags: string[]) {
  const { code, output, errors } = await finish(['trigger', type, '--to', url, '--json', ...flags])
  const deliveries = output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  return { code, errors, deliveries }
}

describe('trigger', () => {
  test('sends an event, and prints its delivery', async () => {
    const { url, events } = await receive()
    const { code, deliveries } = await trigger(
      'encoding.finished',
      url,
      '--title',
      'A & B',
      '--qualities',
      '1080p,360p',
    )
    expect(code).toBe(0)
    expect(deliveries).toMatchObject([
      { type: 'encoding.finished', attempt: 1, status: 200, answer: '{"status":"accepted"}' },
    ])
    expect(events).toMatchObject([
      { type: 'encoding.finished', title: 'A & B', qualities: ['360p', '1080p'], format: 'flat', status: 'done' },
    ])
  })

  test('sends the events in the life of a media item one after another', async () => {
    const { url, events } = await receive()
    const { code } = await trigger('lifecycle', url, '--time-scale', '0.01', '--fails', '--format', 'envelope')
    expect(code).toBe(0)
    expect(events.map(({ type }) => type)).toEqual([
      'file.received',
      'encoding.started',
      'partial.finished',
      'encoding.failed',
    ])
    expect(events.every(({ format }) => format === 'envelope')).toBe(true)
  })

  test.each(named)('signs with %s', async (_, options, flags) => {
    const { url, reports } = await receive(verifierFor(options))
    const env = secretOf(options)
    const args = ['trigger', 'encoding.failed', '--to', url, '--sign', options.scheme, ...flags]
    const { code, output } = await finish(args, env)
    expect({ code, outcomes: reports.map(({ outcome }) => outcome) }).toEqual({ code: 0, outcomes: ['accepted'] })
    expect(output).not.toContain(env.MEDIA_WEBHOOKS_SECRET)
  })

  test('signs a URL that holds the token already, or another one', async () => {
    const { url, reports } = await receive(urlToken({ secret: 's3cret' }))
    for (const query of ['?token=s3cret', '?a=b?c&token=other']) {
      const args = ['file.received', `${url}${query}`, '--sign', 'url-token', '--secret', 's3cret'] as const
      expect((await trigger(...args)).code).toBe(0)
    }
    expect(reports.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted'])
  })

  /** The outcomes at the receiver, and the number of printed deliveries. */
  const effects: Record<Fault, { outcomes: string[]; printed: number }> = {
    duplicate: { outcomes: ['accepted', 'duplicate'], printed: 2 },
    'concurrent-duplicate': { outcomes: ['accepted', 'duplicate'], printed: 2 },
    reorder: { outcomes: ['accepted'], printed: 1 },
    delay: { outcomes: ['accepted'], printed: 1 },
    drop: { outcomes: [], printed: 0 },
    'corrupt-body': { outcomes: ['malformed', 'accepted'], printed: 2 },
    'cut-connection': { outcomes: ['incomplete', 'accepted'], printed: 2 },
    'lost-answer': { outcomes: ['accepted', 'duplicate'], printed: 2 },
  }

  test.each(faults.filter((fault) => fault !== 'reorder'))('simulates the fault %s', async (fault) => {
    const { url, reports } = await receive()
    const { code, deliveries } = await trigger('file.received', url, '--fault', fault, '--time-scale', '0.01')
    const { outcomes, printed } = effects[fault]
    expect(code).toBe(0)
    expect(reports.map(({ outcome }) => outcome).toSorted()).toEqual(outcomes.toSorted())
    expect(deliveries).toHaveLength(printed)
  })

  test('reorders the events of a media item, and says that a single event has no order', async () => {
    const { url, events } = await receive()
    const { code } = await trigger('lifecycle', url, '--fault', 'reorder', '--time-scale', '0.05')
    expect(code).toBe(0)
    const types = events.map(({ type }) => type)
    expect(types).toHaveLength(5)
    expect(types.slice(0, 2)).toEqual(['encoding.started', 'file.received'])

    const alone = await trigger('file.received', url, '--fault', 'reorder')
    expect(alone).toMatchObject({ code: 2, errors: expect.stringContaining('--fault reorder goes with lifecycle') })
  })

  test('fails when an event is given up, and prints each retry with its reason', async () => {
    const url = await serveWebhook((_, response) => void response.writeHead(500).end('no'))
    const { code, output } = await finish(['trigger', 'file.received', '--to', url, '--time-scale', '0.001'])
    expect(code).toBe(1)
    expect(output.match(/not acknowledged \(status\): answered 500; retry in [\d.]+ ms/g)).toHaveLength(3)
    expect(output).toContain('0 of 1 acknowledged')
  })

  test('fails when a copy is rejected', async () => {
    let answers = 0
    const url = await serveWebhook((_, response) => void response.writeHead(answers++ === 0 ? 200 : 409).end())
    const { code } = await trigger('file.received', url, '--fault', 'duplicate')
    expect(code).toBe(1)
  })

  test('prints no secret of the URL that the receiver repeats', async () => {
    const url = await serveWebhook(
      (request, response) => void response.writeHead(404).end(`Cannot POST ${request.url}`),
    )
    for (const query of ['?token=s3cret', '?0123456789abcdef']) {
      const { code, deliveries } = await trigger('file.received', `${url}${query}`, '--profile', 'observed')
      expect({ code, answer: deliveries[0].answer }).toEqual({
        code: 1,
        answer: expect.stringMatching(/^Cannot POST .*…$/),
      })
      expect(deliveries[0].answer).not.toMatch(/s3cret|0123456789abcdef/)
    }
  })

  test('does not retry after an answer with the profile observed', async () => {
    const url = await serveWebhook((_, response) => void response.writeHead(500).end())
    const { code, deliveries } = await trigger('file.received', url, '--profile', 'observed')
    expect({ code, deliveries: deliveries.length }).toEqual({ code: 1, deliveries: 1 })
  })

  test('exits with 130 when it is interrupted', async () => {
    const { url } = await receive()
    const program = start(['trigger', 'lifecycle', '--to', url])
    await program.line(/file\.received/)
    program.interrupt()
    expect(await program.code).toBe(130)
    expect(program.errors()).toBe('interrupted: 1 of 5 acknowledged so far\n')
  })
})

/** A body of another service, with white space and characters that its sender would write in another way. */
const other = '{\n  "type": "video.asset.ready",\n  "data": { "id": "é<\\u0026>", "n": 1e2 }\n}\n'

async function fileWith(content: string | Uint8Array): Promise<string> {
  const path = join(await temporaryFolder(), 'event.json')
  await writeFile(path, content)
  return path
}

/** Starts a server that keeps the bodies and the ids that it gets. */
async function keepBodies(status = 200) {
  const bodies: string[] = []
  const ids: unknown[] = []
  const url = await serveWebhook(async (request, response) => {
    bodies.push((await buffer(request)).toString())
    ids.push(request.headers['webhook-id'])
    response.writeHead(status).end('ok')
  })
  return { url, bodies, ids }
}

describe('trigger --body', () => {
  test('sends the bytes of the file, and prints the type', async () => {
    const { url, bodies } = await keepBodies()
    const { code, output } = await finish(['trigger', '--body', await fileWith(other), '--to', url])
    expect({ code, bodies }).toEqual({ code: 0, bodies: [other] })
    expect(output).toMatch(/^\S+ {2}video\.asset\.ready {2}attempt 1 {2}200 .*ok\n\n1 of 1 acknowledged\n$/)
  })

  test.each(named)('signs the file with %s', async (_, options, flags) => {
    const { url, reports } = await receive(verifierFor(options))
    const file = await fileWith('{ "type": "video.asset.ready", "media_id": "m1", "object": {} }\n')
    const args = ['trigger', '--body', file, '--to', url, '--sign', options.scheme, ...flags]
    const { code } = await finish(args, secretOf(options))
    expect({ code, outcomes: reports.map(({ outcome }) => outcome) }).toEqual({ code: 0, outcomes: ['accepted'] })
  })

  test('reads standard input in place of a file', async () => {
    const { url, bodies } = await keepBodies()
    const stdin = Readable.from([other.slice(0, 20), other.slice(20)])
    const { code } = await finish(['trigger', '--body', '-', '--to', url], {}, stdin)
    expect({ code, bodies }).toEqual({ code: 0, bodies: [other] })
  })

  test('prints nothing that the body does not have', async () => {
    const { url } = await keepBodies()
    const file = await fileWith('{"uid":"6b9e68b0","status":{"state":"ready"}}')
    expect((await finish(['trigger', '--body', file, '--to', url])).output).toMatch(/^\S+ {2}- {2,}attempt 1 {2}200/)
    const { output } = await finish(['trigger', '--body', file, '--to', url, '--json'])
    const names = ['attempt', 'startedAt', 'durationMs', 'status', 'answer']
    expect(Object.keys(JSON.parse(output))).toEqual(names)
    const known = await finish(['trigger', '--body', await fileWith(other), '--to', url, '--json'])
    expect(Object.keys(JSON.parse(known.output))).toEqual(['type', ...names])
  })

  test.each<[Fault, string[]]>([
    ['duplicate', [other, other]],
    ['corrupt-body', [`${other.slice(0, -1)}#`]],
    ['drop', []],
  ])('simulates the fault %s', async (fault, expected) => {
    const { url, bodies } = await keepBodies()
    const file = await fileWith(other)
    expect((await finish(['trigger', '--body', file, '--to', url, '--fault', fault])).code).toBe(0)
    expect(bodies).toEqual(expected)
  })

  test('retries as the profile says, with one id for each body', async () => {
    const { url, ids } = await keepBodies(500)
    const sign = ['--sign', 'standard-webhooks', '--secret', 'whsec_MTIz', '--time-scale', '0.001']
    for (const [content, profile] of [
      ['{"uid":1}', 'documented'],
      ['{"uid":2}', 'observed'],
    ]) {
      const args = ['trigger', '--body', await fileWith(content as string), '--to', url, ...sign]
      expect((await finish([...args, '--profile', profile as string])).code).toBe(1)
    }
    expect(ids).toHaveLength(5)
    expect(new Set(ids).size).toBe(2)
    expect(new Set(ids.slice(0, 4)).size).toBe(1)
  })

  test.each<[what: string, content: string | Uint8Array, message: string]>([
    ['is no JSON', '{"type":', 'cannot be sent: the payload is not JSON: '],
    ['is no object', '[{}]', 'cannot be sent: the payload must be a JSON object'],
    ['is not UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d), 'takes a file in UTF-8'],
    ['has more than 1 MiB', `{}${' '.repeat(2 ** 20)}`, 'takes a file of at most 1048576 bytes'],
    ['begins with a byte order mark', '\uFEFF{}', 'cannot be sent: the payload is not JSON: '],
  ])('sends nothing if the file %s', async (_, content, message) => {
    const { url, bodies } = await keepBodies()
    const { code, errors } = await finish(['trigger', '--body', await fileWith(content), '--to', url])
    expect({ code, errors, bodies }).toEqual({
      code: 2,
      errors: expect.stringContaining(`media-webhooks: --body ${message}`),
      bodies: [],
    })
  })

  test('names a file that is missing', async () => {
    const { code, errors } = await finish(['trigger', '--body', '/no/event.json', '--to', 'http://a/'])
    expect({ code, errors }).toEqual({ code: 2, errors: expect.stringContaining('cannot read /no/event.json: ENOENT') })
  })

  test.each([
    [['file.received'], '<type|lifecycle>'],
    [['--type', 'file.received'], '<type|lifecycle>'],
    [['--format', 'flat'], '--format'],
    [['--title', 'a'], '--title'],
    [['--qualities', '360p'], '--qualities'],
    [['--fails'], '--fails'],
  ])('does not go with %j', async (args, name) => {
    const { code, errors } = await finish(['trigger', ...args, '--body', await fileWith(other), '--to', 'http://a/'])
    expect(code).toBe(2)
    expect(errors).toContain(`--body sends the file as it is: leave out ${name} (`)
  })

  test('is missing without a type', async () => {
    const { code, errors } = await finish(['trigger', '--to', 'http://a/'])
    expect({ code, errors }).toEqual({
      code: 2,
      errors:
        "media-webhooks: <type|lifecycle> is missing (or --body <file>) (see 'npx media-webhooks trigger --help')\n",
    })
  })
})
