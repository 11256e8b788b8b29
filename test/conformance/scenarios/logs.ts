import { inspect } from 'node:util'
import { expect, vi } from 'vitest'
import type { Logger, Verifier } from '../../../src/index.ts'
import { encodePayload, type Signer, samplePayload, signWithUrlToken } from '../../../src/testing/index.ts'
import { send, sign, signature, token, verify, verifyToken } from '../sending.ts'
import { type HandledEvent, running, type Subject } from '../subject.ts'

const title = 'title-marker-5b0e'
const field = 'field-marker-c41a'
const query = 'query-marker-88d7'
const sensitive = [title, field, query, signature.secret, token]

const levels = ['debug', 'info', 'warn', 'error'] as const

/** Captures everything written while `run` runs: to the given logger, the console or the standard streams. */
async function writtenDuring(run: (logger: Logger) => Promise<void>): Promise<string> {
  const written: unknown[] = []
  const keep = (...parts: unknown[]) => {
    written.push(...parts)
    return true
  }
  const spies = [
    ...[...levels, 'log' as const, 'trace' as const].map((level) => vi.spyOn(console, level).mockImplementation(keep)),
    vi.spyOn(process.stdout, 'write').mockImplementation(keep),
    vi.spyOn(process.stderr, 'write').mockImplementation(keep),
  ]
  try {
    await run({ debug: keep, info: keep, warn: keep, error: keep })
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  return written.map((part) => inspect(part, { depth: null, maxStringLength: null })).join('\n')
}

/** Causes every line that a receiver writes. */
async function provoke(url: string, sign: Signer): Promise<string> {
  const marked = `${url}?debug=${query}`
  const event = encodePayload(samplePayload('encoding.finished', { title }))
  const failing = encodePayload(samplePayload('encoding.failed', { title }))
  const text = (body: string) => new TextEncoder().encode(body)
  const answers = [
    await send(marked, event, { sign }),
    await send(marked, event, { sign }),
    await send(marked, failing, { sign }),
    await send(marked, event, {}),
    await send(marked, event, { headers: { 'x-signature': field, 'x-timestamp': field, authorization: field } }),
    await send(marked, text(`{"type":"encoding.finished","media_id":{"a":"${field}"},"title":"${title}"}`), { sign }),
    await send(marked, text(`{"title":"${title}","x":"${field}"`), { sign }),
    await send(marked, text(`"${field}"`), { sign }),
    await send(marked, event, { sign, headers: { 'content-type': `text/${field}` } }),
    await send(marked, text(field.repeat(10_000)), { sign }),
    await send(marked, text(''), { method: 'GET' }),
  ]
  return answers.map(({ body }) => body).join('\n')
}

async function handle({ type }: HandledEvent): Promise<void> {
  if (type === 'encoding.failed') throw new Error('the handler failed')
}

export async function nothingSensitive(subject: Subject): Promise<void> {
  const schemes: [Verifier, Signer][] = [
    [verify, sign],
    [verifyToken, signWithUrlToken({ secret: token })],
  ]
  for (const [verify, sign] of schemes) {
    for (const given of [true, false]) {
      let answers = ''
      const written = await writtenDuring((logger) =>
        running(subject, { verify, handle, ...(given && { logger }) }, async (url) => {
          answers = await provoke(url, sign)
        }),
      )
      expect(sensitive.filter((marker) => written.includes(marker) || answers.includes(marker))).toEqual([])
    }
  }
}
