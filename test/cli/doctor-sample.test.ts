import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { nodeHandler } from '../../adapters/node.ts'
import { maxRequests } from '../../src/cli/commands/doctor/examine.ts'
import { unverified, urlToken, type Verifier } from '../../src/index.ts'
import { type SigningOptions, verifierFor } from '../../src/service/emulator/sending/signing.ts'
import { watchedReceiver } from '../adapters/receivers.ts'
import { mux, ready, receiving } from '../events/senders.ts'
import { serveWebhook } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { accepted, examine, handWritten, type Request } from './examined-receiver.ts'
import { finish } from './program.ts'
import { named, secretOf } from './schemes.ts'

const sample = '{\n  "type": "video.asset.ready", "media_id": "m1",\n  "object": {}, "é": "<&>"\n}\n\n'

async function fileWith(content = sample): Promise<string> {
  const path = join(await temporaryFolder(), 'sample.json')
  await writeFile(path, content)
  return path
}

async function receive(verify: Verifier) {
  const { receiver } = watchedReceiver({ verify, handlers: {} })
  const handled: string[] = []
  receiver.onAny(({ type }) => void handled.push(type))
  return { url: await serveWebhook(nodeHandler(receiver)), handled }
}

const flagsOf = (options: SigningOptions, flags: readonly string[]) => {
  const secretFlag = options.scheme === 'basic-auth' ? '--password' : '--secret'
  return ['--verify', options.scheme, secretFlag, secretOf(options).MEDIA_WEBHOOKS_SECRET, ...flags]
}

describe('doctor --body', () => {
  test('finds nothing wrong with a receiver of a sender of your own', async () => {
    const verify = { scheme: 'timestamped-signature', secret: 's3cret', header: 'mux-signature' } as const
    const { receiver, handled } = receiving(mux, { verify: verifierFor(verify) })
    const url = await serveWebhook(nodeHandler(receiver))
    const args = ['--verify', verify.scheme, '--secret', verify.secret, '--header', verify.header]
    const { code, findings } = await examine(url, '--body', await fileWith(JSON.stringify(ready())), ...args)
    expect({ code, not: findings.filter(({ verdict }) => verdict !== 'ok') }).toEqual({ code: 0, not: [] })
    expect(handled.map(({ type }) => type)).toEqual(['video.asset.ready'])
  })

  test.each(named)(
    'finds nothing wrong with a receiver of this package and %s, and runs a handler once',
    async (_, options, flags) => {
      const { url, handled } = await receive(verifierFor(options))
      const args = ['--body', await fileWith(), ...flagsOf(options, flags)]
      const { code, findings, requests } = await examine(url, ...args)
      expect({ code, handled }).toEqual({ code: 0, handled: ['video.asset.ready'] })
      expect(findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([])
      expect(requests).toBeLessThanOrEqual(maxRequests)

      // All of it is a duplicate now.
      expect(await examine(url, ...args)).toMatchObject({ code: 0, requests })
      expect(handled).toHaveLength(1)
    },
  )

  test('leaves out what only payloads of the service can show', async () => {
    const { url } = await receive(urlToken({ secret: 's3cret' }))
    const { findings } = await examine(`${url}?token=s3cret`, '--body', await fileWith())
    const [first, second, third, fourth] = findings
    expect([first, second, third]).toMatchObject([
      { check: 'acknowledges the sample within 1 s', verdict: 'ok' },
      { check: 'acknowledges a duplicate', verdict: 'ok' },
      { check: 'handles an event once when it comes in two deliveries', reason: '1 answered as duplicate' },
    ])
    expect(fourth?.check).toBe('acknowledges 5 concurrent duplicates')
    const checks = findings.map(({ check }) => check)
    expect(checks).toContain('acknowledges 20 concurrent duplicates within 1 s each')
    expect(checks.join()).not.toMatch(/title|media_id|in 5 concurrent deliveries/)
  })

  test('sends the bytes of the file, or faults made from them', async () => {
    const texts = new Map<string, number>()
    const answer = (request: Request, rejection?: number) => {
      if (request.text.length < 1_000) texts.set(request.text, (texts.get(request.text) ?? 0) + 1)
      return accepted(request, rejection)
    }
    const { code } = await examine(
      `${await serveWebhook(handWritten(answer))}?token=s3cret`,
      '--body',
      await fileWith(),
    )
    expect(code).toBe(0)
    expect([...texts.keys()].toSorted()).toEqual(
      [sample, '', '[]', sample.slice(0, sample.lastIndexOf('}')), sample.replace('>"', '\uFFFD"')].toSorted(),
    )
  })

  test('accepts any 2xx, and warns that the answers do not show whether the sample was handled once', async () => {
    const url = await serveWebhook(handWritten((_, rejection = 202) => rejection))
    const { code, findings } = await examine(`${url}?token=s3cret`, '--body', await fileWith())
    expect(code).toBe(0)
    expect(findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([
      {
        check: 'handles an event once',
        verdict: 'warning',
        reason: 'unknown: the answers do not show it',
        fix: 'check that your handlers ran once for the sample',
      },
    ])
  })

  test('finds that the sample is handled twice, if the answers are those of a receiver of this package', async () => {
    const answers = (_: Request, rejection?: number) => {
      const code = rejection === 400 ? 'malformed' : 'unauthorized'
      if (rejection === undefined) return [200, '{"status":"accepted"}'] as const
      return [rejection, JSON.stringify({ status: 'error', code })] as const
    }
    const url = await serveWebhook(handWritten(answers))
    const { failed } = await examine(`${url}?token=s3cret`, '--body', await fileWith())
    expect(failed).toEqual(['handles an event once when it comes in two deliveries'])
  })

  test('warns that it did not check duplicates if the sample is ignored', async () => {
    const { receiver } = watchedReceiver({ verify: urlToken({ secret: 's3cret' }) })
    const url = await serveWebhook(nodeHandler(receiver))
    const { code, findings } = await examine(`${url}?token=s3cret`, '--body', await fileWith())
    expect(code).toBe(0)
    expect(findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([
      {
        check: 'handles an event once',
        verdict: 'warning',
        reason: 'not checked: no handler is registered for the type of the sample',
        fix: 'register a handler for it, or with onAny, and run the check again',
      },
    ])
  })

  test('finds bad bodies that are acknowledged, and forgeries', async () => {
    const url = await serveWebhook((_, response) => void response.end())
    const { failed } = await examine(url, '--body', await fileWith('{}'))
    expect(failed).toEqual([
      'rejects a delivery without credentials',
      'rejects a body that is not JSON',
      'rejects an empty body',
      'rejects JSON that is not an object',
      'rejects a body of 1 MiB',
      'rejects a body of 1 MiB without Content-Length',
      'rejects a GET',
      'rejects a PUT',
    ])
  })

  test('does not take it for a fault that an id is known before the body is read', async () => {
    const [, options] = named.find(([name]) => name === 'standard-webhooks') as (typeof named)[number]
    const verifier = verifierFor(options)
    const ids = new Set<string>()
    const listener = handWritten(
      async ({ text, headers }, rejection) => {
        const fields = new Headers(headers as Record<string, string>)
        if (rejection === 405 || rejection === 413 || rejection === 415) return rejection
        // A body that was not UTF-8 has another signature now.
        const { verified } = await verifier.verify({ url: '/', headers: fields, body: Buffer.from(text) })
        if (!verified) return 401
        const id = fields.get('webhook-id') as string
        if (rejection !== undefined && !ids.has(id)) return rejection
        ids.add(id)
        return 200
      },
      () => true,
    )
    const args = ['--body', await fileWith(), ...flagsOf(options, [])]
    const { code, failed } = await examine(await serveWebhook(listener), ...args)
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
  })

  test('stops at a sample that is rejected', async () => {
    const { url } = await receive(unverified())
    const { code, findings } = await examine(url, '--body', await fileWith('{"uid":"6b9e68b0"}'))
    expect(code).toBe(1)
    expect(findings).toMatchObject([
      { check: 'acknowledges the sample within 1 s', verdict: 'failed', reason: expect.stringMatching(/^400 in/) },
      { check: 'the other checks', verdict: 'skipped' },
    ])
  })

  test('reads the sample from standard input, and names the flag of a wrong one', async () => {
    const { url, handled } = await receive(unverified())
    const args = ['doctor', url, '--verify', 'unverified', '--body']
    expect((await finish([...args, '-'], {}, Readable.from([sample]))).code).toBe(0)
    expect(handled).toEqual(['video.asset.ready'])
    const { code, errors } = await finish([...args, await fileWith('[]')])
    expect({ code, errors }).toEqual({
      code: 2,
      errors: expect.stringMatching(/^media-webhooks: --body cannot be sent/),
    })
  })

  test('warns in the help that handlers run for real', async () => {
    const { output } = await finish(['doctor', '--help'])
    expect(output.replace(/\s+/g, ' ')).toContain('That is not a test delivery: your handlers run for real')
  })
})
