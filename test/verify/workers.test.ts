import { expect, test, vi } from 'vitest'
import { snsSignature } from '../../src/index.ts'
import { amazonCertificate, amazonMessages, amazonTime } from './sns-vectors.ts'

vi.mock('../../src/internal/requests.ts', () => ({ requestsEndWork: true }))

test('on Workers no message waits for the certificate of another, whose request may have ended', async () => {
  const message = amazonMessages['a notification'] ?? {}
  const fetch = vi.fn(async () => new Response(amazonCertificate))
  fetch.mockImplementationOnce(() => new Promise(() => {}))
  const verifier = snsSignature({ topicArn: message['TopicArn'] ?? '', fetch, now: () => amazonTime })
  const body = new TextEncoder().encode(JSON.stringify(message))
  const ask = async () => verifier.verify({ url: '/', headers: new Headers(), body })
  const ended = ask()
  const verified = { verified: true, eventId: message['MessageId'] }
  expect(await ask()).toEqual(verified)
  expect(await ask()).toEqual(verified)
  expect(fetch).toHaveBeenCalledTimes(2)
  expect(await Promise.race([ended, 'waits'])).toBe('waits')
})
