import { expect } from 'vitest'
import { signWithHmac } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'
import { freshBody, type SendOptions, send, sign, signature, signLater, textOf, verify } from '../sending.ts'
import { running, type Subject } from '../subject.ts'

const encode = (text: string) => new TextEncoder().encode(text)

/** A delivery that has to be rejected. Without `body`, it carries the genuine event. */
interface Wrong extends SendOptions {
  readonly body?: Uint8Array
}

/** Checks that each wrong delivery is rejected, and that the genuine event can be handled afterwards. */
async function rejects(subject: Subject, status: number, wrongs: (body: Uint8Array) => readonly Wrong[]) {
  const event = freshBody({ title: 'a & b.mp4' })
  let handled = 0
  const handle = () => {
    handled += 1
  }
  await running(subject, { verify, handle, logger: silent }, async (url) => {
    for (const { body = event, ...options } of wrongs(event)) {
      expect((await send(url, body, options)).status, textOf(body)).toBe(status)
    }
    expect(handled).toBe(0)
    expect((await send(url, event)).status).toBe(200)
  })
  expect(handled).toBe(1)
}

export const missingSignature = (subject: Subject) => rejects(subject, 401, () => [{}])

export const malformedSignature = (subject: Subject) =>
  rejects(subject, 401, () =>
    ['', 'no hex', '00', '00'.repeat(32), '0'.repeat(10_000)].map((value) => ({
      headers: { 'x-timestamp': String(Math.floor(Date.now() / 1_000)), 'x-signature': value },
    })),
  )

export const wrongKey = (subject: Subject) =>
  rejects(subject, 401, () => [{ sign: signWithHmac({ ...signature, secret: 'another secret' }) }])

// The receiver tolerates five minutes in both directions.
export const staleSignature = (subject: Subject) =>
  rejects(subject, 401, () => [{ sign: signLater(-310) }, { sign: signLater(310) }, { sign: signLater(-86_400 * 365) }])

export const alteredBody = (subject: Subject) =>
  rejects(subject, 401, (body) => {
    const text = textOf(body)
    const altered = [
      text.replace('a \\u0026 b', 'c'),
      `${text} `,
      text.replace('\\u0026', '&'),
      text.replace(':', ': '),
    ]
    const signOriginal: SendOptions['sign'] = (draft) =>
      sign({ ...draft, body }).then((signed) => ({ ...signed, body: draft.body }))
    return altered.map((each) => ({ body: encode(each), sign: signOriginal }))
  })

export const malformedBody = (subject: Subject) =>
  rejects(subject, 400, () =>
    [
      encode(''),
      encode('no JSON'),
      encode('[]'),
      encode('null'),
      encode('{}'),
      encode('{"type":"encoding.finished"}'),
      encode('{"type":"encoding.finished","media_id":{}}'),
      encode('['.repeat(20_000)),
      new Uint8Array([0x22, 0xff, 0xfe, 0x22]),
    ].map((body) => ({ body, sign })),
  )

export const unsupportedContentType = (subject: Subject) =>
  rejects(subject, 415, () =>
    ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'].map((type) => ({
      sign,
      headers: { 'content-type': type },
    })),
  )
