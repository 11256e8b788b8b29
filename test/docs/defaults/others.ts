import { setTimeout as sleep } from 'node:timers/promises'
import { vi } from 'vitest'
import {
  type HmacSignatureOptions,
  hmacSignature,
  type TimestampedSignatureOptions,
  timestampedSignature,
} from '../../../src/index.ts'
import { createClient } from '../../../src/service/client/index.ts'
import { createEmulator, type Emulator, type EmulatorOptions } from '../../../src/service/emulator/index.ts'
import { makeDelivery, samplePayload, signWithHmac, signWithTimestampedSignature } from '../../../src/testing/index.ts'
import { answering, subscribe } from '../../service/emulator/started-emulator.ts'
import { serveWebhook } from '../../support/serve.ts'
import { untyped } from '../../support/untyped.ts'
import { elapsed, never, type Observations, required } from './elapsed.ts'

const credentials = { accessToken: 'token' }
const baseUrl = 'http://127.0.0.1'
const id = '0f8fad5b-d9cb-469f-a165-70867728950e'

/** Counts the requests of a call while a service answers 503. */
async function requestsOfACall(): Promise<number> {
  const fetch = vi.fn(async () => new Response('{}', { status: 503 }))
  await elapsed(() => createClient(credentials, { baseUrl, fetch }).webhook.get(id))
  return fetch.mock.calls.length
}

/** Returns true if a client calls the `fetch` of the runtime. */
async function usesGlobalFetch(): Promise<boolean> {
  const spy = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('no'))
  await createClient(credentials, { baseUrl })
    .webhook.check(id)
    .catch(() => {})
  const isUsed = spy.mock.calls.length > 0
  spy.mockRestore()
  return isUsed
}

export const ofClient: Observations = {
  baseUrl: () => required(() => createClient(credentials, untyped({}))),
  timeoutMs: () => elapsed(() => createClient(credentials, { baseUrl, fetch: never }).webhook.check(id)),
  retries: async () => (await requestsOfACall()) - 1,
  fetch: async () => ((await usesGlobalFetch()) ? "the runtime's" : 'another one'),
}

async function withEmulator<Result>(options: EmulatorOptions, run: (emulator: Emulator) => Promise<Result> | Result) {
  await using emulator = await createEmulator(options)
  return await run(emulator)
}

/** Sends one event to a receiver that answers with a status, or not at all, and returns it once it was delivered. */
async function sendOne(emulator: Emulator, status?: number) {
  await subscribe(emulator, await serveWebhook(status === undefined ? () => {} : answering(status)), ['file_received'])
  emulator.addMedia()
  const sending = () => emulator.sendings()[0] as NonNullable<ReturnType<Emulator['sendings']>[0]>
  while (status !== undefined && sending().deliveries.length === 0) await sleep(5)
  return sending
}

const randomCredential = (name: 'publicKey' | 'secretKey' | 'accessToken') => () =>
  withEmulator({}, (one) => withEmulator({}, (other) => one.credentials[name] !== other.credentials[name] && 'random'))

export const ofEmulator: Observations = {
  // Two can listen at a time, each on a port of its own.
  port: () => withEmulator({}, (one) => withEmulator({}, (other) => (one.url === other.url ? one.url : 0))),
  profile: () =>
    withEmulator({ timeScale: 0 }, async (emulator) => {
      const sending = await sendOne(emulator, 500)
      await emulator.settled()
      return sending().deliveries.length === 4 ? 'documented' : 'observed'
    }),
  timeScale: () =>
    withEmulator({}, async (emulator) => ((await sendOne(emulator, 500))().deliveries[0]?.retryInMs ?? 0) / 3_000),
  publicKey: randomCredential('publicKey'),
  secretKey: randomCredential('secretKey'),
  accessToken: randomCredential('accessToken'),
  maxWaiting: () =>
    withEmulator({}, async (emulator) => {
      const sending = await sendOne(emulator)
      let waiting = 1
      try {
        while (waiting < 20_000) {
          emulator.repeat(sending().id)
          waiting++
        }
      } catch (error) {
        if ((error as { code?: string }).code !== 'overloaded') throw error
      }
      return waiting
    }),
  maxRecords: () =>
    withEmulator({}, async (emulator) => {
      const { id } = (await sendOne(emulator))()
      // An event that is unfinished is kept besides.
      for (let i = 0; i < 5_000; i++) emulator.repeat(id, { fault: 'drop' })
      return emulator.sendings().length - 1
    }),
}

const secret = 's3cret'
const header = 'x-signature'

/** Returns true if a verifier with some options accepts what a signer with others signs. */
async function accepts(
  options: Partial<HmacSignatureOptions>,
  signed: Partial<HmacSignatureOptions>,
  change = (signature: string) => signature,
): Promise<boolean> {
  const sign = signWithHmac({ secret, header, ...signed })
  const { url, headers, body } = await makeDelivery(samplePayload('encoding.finished'), { sign })
  const fields = new Headers(headers as Headers)
  fields.set(header, change(fields.get(header) as string))
  const verifier = hmacSignature({ secret, header, ...options })
  return (await verifier.verify({ url, headers: fields, body: body as Uint8Array })).verified
}

/** Finds the value of an option with which a signature has to be made, to be accepted without it. */
async function assumed<Name extends 'algorithm' | 'encoding'>(
  name: Name,
  values: readonly NonNullable<HmacSignatureOptions[Name]>[],
) {
  const accepted = await Promise.all(values.map((value) => accepts({}, { [name]: value })))
  return values.filter((_, index) => accepted[index]).join()
}

const timestamp = { header: 'x-timestamp' }

/**
 * The greatest age of a signature that is accepted, in seconds.
 * @param isAcceptedAt decides for the clocks of the verifier and of the signer
 */
async function greatestAge(isAcceptedAt: (now: () => number, signedAt: () => number) => Promise<boolean>) {
  const now = 1_800_000_000_000
  const isAccepted = (age: number) =>
    isAcceptedAt(
      () => now,
      () => now - age * 1_000,
    )
  let age = 0
  while (age < 1_000 && (await isAccepted(age + 1))) age++
  return age
}

export const ofHmacSignature: Observations = {
  algorithm: () => assumed('algorithm', ['sha1', 'sha256', 'sha512']),
  encoding: () => assumed('encoding', ['base64', 'hex']),
  prefix: async () => ((await accepts({}, {})) && !(await accepts({}, { prefix: 'sha256=' })) ? 'none' : 'some'),
  separator: async () =>
    (await accepts({ separator: ',' }, {}, (signature) => `${signature},${signature}`)) &&
    !(await accepts({}, {}, (signature) => `${signature},${signature}`))
      ? 'none'
      : 'some',
  timestamp: async () => ((await accepts({}, {})) ? 'none' : 'some'),
  async signedContent() {
    const signsTime = await accepts({ timestamp }, { timestamp, signedContent: 'timestamp.body' })
    const signsBody = await accepts({}, { signedContent: 'body' })
    return signsTime && signsBody ? "`'timestamp.body'` with a timestamp, else `'body'`" : 'other'
  },
}

export const ofTimestamp: Observations = {
  toleranceSeconds: () => greatestAge((now, signedAt) => accepts({ timestamp, now }, { timestamp, now: signedAt })),
}

async function acceptsTimestamped(
  options: Partial<TimestampedSignatureOptions>,
  signed: Partial<TimestampedSignatureOptions>,
): Promise<boolean> {
  const sign = signWithTimestampedSignature({ secret, header, ...signed })
  const { url, headers, body } = await makeDelivery(samplePayload('encoding.finished'), { sign })
  const verifier = timestampedSignature({ secret, header, ...options })
  return (await verifier.verify({ url, headers, body: body as Uint8Array })).verified
}

/** Finds the name with which a header has to be made, to be accepted without it. */
async function assumedName(option: 'time' | 'signature') {
  const names = ['t', 'time', 'v1', 'sig1'].filter((name) => (option === 'time') === name.startsWith('t'))
  const accepted = await Promise.all(names.map((name) => acceptsTimestamped({}, { [option]: name })))
  return names.filter((_, index) => accepted[index]).join()
}

export const ofTimestampedSignature: Observations = {
  time: () => assumedName('time'),
  signature: () => assumedName('signature'),
  toleranceSeconds: () => greatestAge((now, signedAt) => acceptsTimestamped({ now }, { now: signedAt })),
}
