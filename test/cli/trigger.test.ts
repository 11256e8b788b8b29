import { describe, expect, test } from 'vitest'
import { nodeHandler } from '../../adapters/node.ts'
import { type Fault, faults } from '../../src/emulator/sending/sending.ts'
import { verifierFor } from '../../src/emulator/sending/signing.ts'
import { type MediaEvent, unverified, urlToken } from '../../src/index.ts'
import { watchedReceiver } from '../adapters/receivers.ts'
import { serveWebhook } from '../support/serve.ts'
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
    expect(output.match(/not acknowledged \(status\): answered 500; retry in 0\.003 s/g)).toHaveLength(3)
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
