import { createSign, generateKeyPairSync, X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { createReceiver, defineSender, type SnsSignatureOptions, snsSignature } from '../../src/index.ts'
import { silent } from '../support/silent.ts'
import { amazonCertificate, amazonMessages, amazonTime, ownCertificate, ownKey } from './sns-vectors.ts'

const topicArn = 'arn:aws:sns:eu-central-1:123456789012:media'
const certificateUrl = 'https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0123abcd.pem'

type Fields = Readonly<Record<string, unknown>>

const notification: Fields = {
  Type: 'Notification',
  MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
  TopicArn: topicArn,
  Subject: 'Encoded',
  Message: '{"film":"Ä 🎬"}\nend',
  Timestamp: '2026-05-02T00:54:06.655Z',
  SignatureVersion: '2',
  SigningCertURL: certificateUrl,
}
const { Subject: _, ...withoutSubject } = notification
const confirmation: Fields = {
  ...withoutSubject,
  Type: 'SubscriptionConfirmation',
  Token: 'token',
  SubscribeURL: 'https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&Token=token',
}

/** The fields that Amazon documents as signed, in their order, written down a second time. */
const order = ['Message', 'MessageId', 'Subject', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']

function sign(fields: Fields, { key = ownKey, hash = fields['SignatureVersion'] === '1' ? 'sha1' : 'sha256' } = {}) {
  const names = order.filter((name) => (fields[name] ?? undefined) !== undefined)
  const text = names.map((name) => `${name}\n${fields[name]}\n`).join('')
  return { ...fields, Signature: createSign(hash).update(text).sign(key, 'base64') }
}

const encode = (fields: Fields | string) =>
  new TextEncoder().encode(typeof fields === 'string' ? fields : JSON.stringify(fields))

const answering = (pem: string, init?: ResponseInit) => async () => new Response(pem, init)

const make = (options: Partial<SnsSignatureOptions> = {}) =>
  snsSignature({ topicArn, fetch: answering(ownCertificate), ...options })

const ask = async (verifier: ReturnType<typeof make>, message: Fields | string | Uint8Array) =>
  verifier.verify({
    url: '/',
    headers: new Headers(),
    body: message instanceof Uint8Array ? message : encode(message),
  })

const verified = { verified: true, eventId: notification['MessageId'] }
const rejected = (reason: RegExp) => ({ verified: false, reason: expect.stringMatching(reason) })
const unavailable = (message: RegExp) => ({
  verified: false,
  unavailable: true,
  reason: 'the certificate of SNS cannot be fetched',
  error: expect.objectContaining({ message: expect.stringMatching(message) }),
})

/** Declares the tests of `snsSignature` with an implementation of `#crypto`. */
export function testSns(crypto: string): void {
  describe(`snsSignature, ${crypto}`, () => {
    describe.each(Object.entries(amazonMessages))('of Amazon: %s', (_, message) => {
      const { TopicArn = '', MessageId, SigningCertURL } = message
      const amazon = (now = amazonTime) => {
        const fetch = vi.fn(answering(amazonCertificate))
        return { verifier: snsSignature({ topicArn: TopicArn, fetch, now: () => now }), fetch }
      }

      test('is verified, and its id is the event id', async () => {
        const { verifier, fetch } = amazon()
        expect(await ask(verifier, message)).toEqual({ verified: true, eventId: MessageId })
        expect(fetch).toHaveBeenCalledExactlyOnceWith(SigningCertURL, expect.objectContaining({ redirect: 'manual' }))
      })

      test('is not verified when any signed field is another, absent or of another type', async () => {
        const { verifier } = amazon()
        for (const name of order.filter((each) => message[each] !== undefined))
          for (const value of [`${message[name]}.`, undefined, 7, null, [message[name]], { toString: 1 }, true])
            expect(await ask(verifier, { ...message, [name]: value }), name).toEqual(rejected(/topicArn|field|match/))
      })

      test('is not verified outside the time of the certificate', async () => {
        const { validFrom, validTo } = new X509Certificate(amazonCertificate)
        const [from, to] = [Date.parse(validFrom), Date.parse(validTo)]
        for (const now of [from, to]) expect((await ask(amazon(now).verifier, message)).verified).toBe(true)
        for (const now of [from - 1, to + 1, Number.NaN])
          expect(await ask(amazon(now).verifier, message)).toEqual(rejected(/not valid at this time/))
      })
    })

    test.each([
      ['a notification', notification],
      ['a notification without a subject', withoutSubject],
      ['a notification with a subject of null', { ...notification, Subject: null }],
      ['version 1', { ...notification, SignatureVersion: '1' }],
      ['a confirmation', confirmation],
      ['a confirmation of an end', { ...confirmation, Type: 'UnsubscribeConfirmation' }],
      ['an empty message', { ...notification, Message: '' }],
      ['quotes, colons and brackets in the message', { ...notification, Message: '"a": {"b\\": [}' }],
    ])('verifies %s', async (_, fields) => expect(await ask(make(), sign(fields))).toEqual(verified))

    test('verifies unsigned fields, nested ones too, and a body with a byte order mark and white space', async () => {
      const MessageAttributes = { Type: { Type: 'String', Value: 'x' }, MessageId: [{ MessageId: '' }] }
      const text = JSON.stringify({ ...sign(notification), MessageAttributes }, null, 2).replaceAll(
        /(?<!\\)":/g,
        '" \n:',
      )
      expect(await ask(make(), `\uFEFF${text}`)).toEqual(verified)
    })

    test('takes several topics, and no other than these', async () => {
      const other = 'arn:aws-cn:sns:cn-north-1:123456789012:media.fifo'
      for (const topicArn of [other, [other, `${other}2`]]) {
        const fetch = vi.fn(answering(ownCertificate))
        expect(await ask(make({ topicArn, fetch }), sign(notification))).toEqual(rejected(/TopicArn/))
        expect(fetch).not.toHaveBeenCalled()
        expect(await ask(make({ topicArn, fetch }), sign({ ...notification, TopicArn: other }))).toEqual(verified)
      }
    })

    test.each([
      ['another key', sign(notification, { key: pemOf(generateKeyPairSync('rsa', { modulusLength: 2_048 })) })],
      ['the hash of the other version', sign(notification, { hash: 'sha1' })],
      ['another hash', sign(notification, { hash: 'sha512' })],
      ['an unsigned subject', { ...sign(withoutSubject), Subject: 'Encoded' }],
      ['a removed subject', { ...sign(notification), Subject: undefined }],
      ['the type of a confirmation', { ...confirmation, ...sign(withoutSubject), Type: 'SubscriptionConfirmation' }],
      ['a signature of three bytes', { ...sign(notification), Signature: 'AAAA' }],
    ])('does not verify %s', async (_, message) => {
      expect(await ask(make(), message)).toEqual(rejected(/^the signature does not match$/))
    })

    // A part of the message, moved into the fields behind it, leaves the signed text as it was.
    test('does not verify another message with the same signed text', async () => {
      const { Signature } = sign({ ...notification, Message: 'a\nMessageId\nb' })
      const MessageId = `b\nMessageId\n${notification['MessageId']}`
      const moved = { ...notification, Message: 'a', MessageId }
      expect(sign(moved).Signature).toBe(Signature)
      expect(await ask(make(), { ...moved, Signature })).toEqual(rejected(/malformed/))
    })

    test.each([
      ['no JSON', 'x'],
      ['an empty body', ''],
      ['no UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d)],
      ['a list', [notification] as unknown as Fields],
      ['null', 'null'],
      ['a name that is there twice', JSON.stringify(sign(notification)).replace('{', '{"Message":"other",')],
      ['that with an escape', JSON.stringify(sign(notification)).replace('{', String.raw`{"\u004dessage" : "other",`)],
      ['a second __proto__', JSON.stringify(sign(notification)).replace('{', '{"__proto__":1,"__proto__":{},')],
    ])('does not verify %s', async (_, body) => {
      expect(await ask(make(), body)).toEqual(rejected(/not a JSON object, or has a name twice/))
    })

    test.each([
      ['Type', ['notification', 'constructor', '__proto__', '', ['Notification'], { toString: 1 }, 1, null]],
      ['Signature', ['', '#', 'AAA', 1, null, {}, ['AAAA']]],
      ['SignatureVersion', ['', '0', '3', 'constructor', 1, 2, null, ['2']]],
      ['TopicArn', ['', `${topicArn}2`, topicArn.toUpperCase(), [topicArn], 1, null]],
      ['Subject', [1, {}, ['Encoded'], 'a\nb']],
    ])('does not verify a wrong %s, and fetches nothing', async (name, values) => {
      const fetch = vi.fn(answering(ownCertificate))
      for (const value of values) {
        const message = { ...sign(notification), [name]: value }
        expect(await ask(make({ fetch }), message), JSON.stringify(value)).toEqual(
          rejected(new RegExp(`${name}|signed field`)),
        )
      }
      expect(fetch).not.toHaveBeenCalled()
    })

    test('never throws, whatever a field is', async () => {
      const verifier = make()
      const name = fc.constantFrom(...Object.keys(sign(confirmation)), '__proto__', 'toString')
      await fc.assert(
        fc.asyncProperty(name, fc.jsonValue(), async (name, value) => {
          const body = JSON.stringify({ ...sign(confirmation), [name]: '@' }).replace('"@"', () =>
            JSON.stringify(value),
          )
          expect((await ask(verifier, body)).verified).toBeTypeOf('boolean')
        }),
      )
    })

    test.each([
      'https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0123abcd.pem',
      'https://sns.us-gov-west-1.amazonaws.com/a.pem',
      'https://sns.cn-north-1.amazonaws.com.cn/a_b.pem',
    ])('fetches a certificate from %s', async (SigningCertURL) => {
      expect(await ask(make(), sign({ ...notification, SigningCertURL }))).toEqual(verified)
    })

    test.each([
      'https://sns.evil.com/a.pem',
      'https://sns.us-east-1.amazonaws.com.evil.com/a.pem',
      'http://sns.us-east-1.amazonaws.com/a.pem',
      'https://sns.us-east-1.amazonaws.com@evil.com/a.pem',
      'https://user:password@sns.us-east-1.amazonaws.com/a.pem',
      'https://evil.com#@sns.us-east-1.amazonaws.com/a.pem',
      String.raw`https://evil.com\@sns.us-east-1.amazonaws.com/a.pem`,
      'https://sns.us-east-1.amazonaws.com:8443/a.pem',
      'https://sns.us-east-1.amazonaws.com./a.pem',
      'https://evil.sns.us-east-1.amazonaws.com/a.pem',
      'https://snsXus-east-1.amazonaws.com/a.pem',
      // Buckets named sns.
      'https://sns.s3.amazonaws.com/a.pem',
      'https://sns.s3-us-west-2.amazonaws.com/a.pem',
      'https://sns.s3.us-east-1.amazonaws.com/a.pem',
      'https://sns.us-east.amazonaws.com/a.pem',
      'https://sns.us-east-1.amazonaws.com/?Action=a.pem',
      'https://sns.us-east-1.amazonaws.com/a.pem?b',
      'https://sns.us-east-1.amazonaws.com/a.pem#b',
      'https://sns.us-east-1.amazonaws.com/../a.pem',
      'https://sns.us-east-1.amazonaws.com/%2e.pem',
      'https://sns.us-east-1.amazonaws.com/.pem',
      'https://sns.us-east-1.amazonaws.com/a.pem\n',
      ' https://sns.us-east-1.amazonaws.com/a.pem',
      'HTTPS://SNS.US-EAST-1.AMAZONAWS.COM/a.pem',
      'https://sns.us-east-1.amazonaws.com/a.txt',
      'https://sns.us-east-1.amazonaws.com',
      '',
      7,
      null,
      ['https://sns.us-east-1.amazonaws.com/a.pem'],
    ])('fetches no certificate from %j', async (SigningCertURL) => {
      const fetch = vi.fn(answering(ownCertificate))
      expect(await ask(make({ fetch }), sign({ ...notification, SigningCertURL }))).toEqual(rejected(/SigningCertURL/))
      expect(fetch).not.toHaveBeenCalled()
    })

    test.each<[string, () => Promise<Response>, RegExp]>([
      ['is not found', answering('', { status: 404 }), /answered 404$/],
      ['is elsewhere', answering('', { status: 302, headers: { location: 'https://evil.com/' } }), /answered 302$/],
      ['cannot be reached', () => Promise.reject(new TypeError('fetch failed')), /fetch failed/],
      ['has no body', answering(''), /not a certificate/],
      ['is a page', answering('<html>'), /not a certificate/],
      ['is cut off', answering(ownCertificate.slice(0, 300)), /not a certificate/],
      ['is a key', answering(ownKey), /not a certificate/],
      ['is malformed', answering(pem('MIIC', 'CERTIFICATE')), /malformed DER/],
      ['is of a key that is not RSA', answering(withOtherKind(ownCertificate)), /not a certificate of an RSA key/],
      ['is huge', answering('x'.repeat(16_385)), /more than 16384 bytes/],
      ['never ends', async () => new Response(endless()), /more than 16384 bytes/],
    ])('answers 503 if the certificate %s, and tries again', async (_, fail, reason) => {
      const fetch = vi.fn(answering(ownCertificate)).mockImplementationOnce(fail)
      const verifier = make({ fetch })
      expect(await ask(verifier, sign(notification))).toEqual(unavailable(reason))
      expect(await ask(verifier, sign(notification))).toEqual(verified)
      expect(fetch).toHaveBeenCalledTimes(2)
    })

    test('answers 503 if the certificate does not come within 5 s, and tries again', async () => {
      vi.useFakeTimers()
      onTestFinished(() => void vi.useRealTimers())
      const signals: RequestInit['signal'][] = []
      const stalled: SnsSignatureOptions['fetch'] = (_, { signal }) => {
        signals.push(signal)
        return new Promise(() => {})
      }
      const verifier = make({ fetch: stalled })
      for (const count of [1, 2]) {
        const asked = ask(verifier, sign(notification))
        await vi.advanceTimersByTimeAsync(5_000)
        expect(await asked).toEqual(unavailable(/within 5000 ms/))
        expect(signals.map((signal) => signal?.aborted)).toEqual(Array(count).fill(true))
      }
    })

    test('fetches a certificate once, also for messages that come together', async () => {
      const fetch = vi.fn(answering(ownCertificate))
      const verifier = make({ fetch })
      const asked = Array.from({ length: 5 }, () => ask(verifier, sign(notification)))
      expect(await Promise.all(asked)).toEqual(Array(5).fill(verified))
      expect(await ask(verifier, sign({ ...notification, SignatureVersion: '1' }))).toEqual(verified)
      expect(fetch).toHaveBeenCalledTimes(1)
    })

    test('keeps 16 certificates', async () => {
      const fetch = vi.fn(answering(ownCertificate))
      const verifier = make({ fetch })
      const askWith = (n: number) =>
        ask(verifier, sign({ ...notification, SigningCertURL: `https://sns.eu-west-${n}.amazonaws.com/a.pem` }))
      for (let n = 0; n < 17; n++) expect(await askWith(n)).toEqual(verified)
      await askWith(16)
      await askWith(1)
      expect(fetch).toHaveBeenCalledTimes(17)
      await askWith(0)
      expect(fetch).toHaveBeenCalledTimes(18)
    })

    test('uses the fetch of the runtime', async () => {
      const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(answering(ownCertificate))
      onTestFinished(() => fetch.mockRestore())
      expect(await ask(snsSignature({ topicArn }), sign(notification))).toEqual(verified)
    })

    test('uses the MessageId as the event key', async () => {
      const sender = defineSender({
        name: 'sns',
        events: { Notification: z.object({ Message: z.string() }) },
        read: ({ Type, TopicArn, Timestamp }) => ({ type: Type, mediaId: TopicArn, emittedAt: Timestamp }),
      })
      const receiver = createReceiver({ sender, verify: make(), logger: silent })
      const events: unknown[] = []
      receiver.on('Notification', ({ key, data }) => void events.push([key, data.Message]))
      const headers = new Headers({ 'content-type': 'application/json' })
      const send = (message: Fields) => receiver.receive({ method: 'POST', url: '/', headers, body: encode(message) })
      expect((await send(sign(notification))).status).toBe(200)
      expect((await send(sign(notification))).status).toBe(200)
      expect((await send({ ...sign(notification), Message: 'other' })).status).toBe(401)
      await receiver.close()
      expect(events).toEqual([[notification['MessageId'], notification['Message']]])
    })

    test.each([
      undefined,
      '',
      [],
      [topicArn, ''],
      [undefined],
      'media',
      'arn:aws:sqs:eu-central-1:123456789012:media',
      `${topicArn}:b24e11a2-06bd-4e73-aa29-0ed2de3b41b5`,
      ` ${topicArn}`,
      `${topicArn}\n`,
      { media: topicArn },
    ])('cannot be built with the topic %j', (topicArn) => {
      expect(() => snsSignature({ topicArn: topicArn as string })).toThrow(
        expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(/topicArn must be the ARN/) }),
      )
    })

    test('needs the exact bytes', () => expect(make().needsBytes).toBe(true))
  })
}

const pem = (base64: string, label: string) => `-----BEGIN ${label}-----\n${base64}\n-----END ${label}-----\n`

/** Changes the algorithm of the key in a certificate. */
function withOtherKind(certificate: string): string {
  const hex = new X509Certificate(certificate).raw.toString('hex')
  const changed = hex.replace('2a864886f70d010101', '2a864886f70d010102')
  return pem(Buffer.from(changed, 'hex').toString('base64'), 'CERTIFICATE')
}

const pemOf = ({ privateKey }: ReturnType<typeof generateKeyPairSync>) =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

const endless = () =>
  new ReadableStream({ pull: (controller) => controller.enqueue(new TextEncoder().encode('x'.repeat(1_024))) })
