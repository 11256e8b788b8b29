import { Handshakes } from '../../src/events/challenge.ts'
import { mediaService } from '../../src/events/media-service/sender.ts'
import {
  type Acknowledgement,
  createReceiver,
  type Delivery,
  type DeliveryOutcome,
  hmacSignature,
  type MediaService,
  type ReceiverOptions,
  urlToken,
} from '../../src/index.ts'
import type { LogLevel } from '../../src/internal/logger.ts'
import { deliver, makeDelivery, samplePayload, signWithUrlToken } from '../../src/testing/index.ts'
import { answeringInbox, smallInbox } from './listening-receiver.ts'

/** Strings that must not leak: each is a secret, or part of a delivery of the scenarios. */
export const sensitive = {
  title: 'title-marker-5b0e',
  field: 'field-marker-c41a',
  query: 'query-marker-88d7',
  secret: 'secret-marker-03aa',
  guess: 'guess-marker-9f12',
}

/** The message of the errors that the user's functions throw. It may be logged; the sender must not see it. */
export const thrown = 'error-marker-6e4d'

const token = { secret: sensitive.secret }
const sign = signWithUrlToken(token)
const url = `/webhooks/media?debug=${sensitive.query}`
export const payload = samplePayload('encoding.finished', { title: sensitive.title })
export const testPayload = { ...payload, media_id: '00000000-0000-0000-0000-000000000000' }
const body = JSON.stringify({ ...payload, extra: sensitive.field })

/** The media service, if it asked before it sent. */
const asking: MediaService = {
  ...mediaService,
  handshakes: (options) => new Handshakes(({ payload: sent }) => sent && 'the answer', options),
}

type Given = Pick<ReceiverOptions, 'logger' | 'hooks'>

const receiverOf = (given: Given, options: Partial<ReceiverOptions> = {}) =>
  createReceiver({
    verify: urlToken(token),
    inbox: smallInbox(),
    handlers: { 'encoding.finished': () => {} },
    ...given,
    ...options,
  })

const send = (given: Given, options?: Partial<ReceiverOptions>, content: string = body) =>
  deliver(receiverOf(given, options), content, { sign, url })

/** Makes a delivery that is valid except for these parts. */
async function sendAltered(given: Given, parts: Partial<Delivery>, options?: Partial<ReceiverOptions>) {
  return receiverOf(given, options).receive({ ...(await makeDelivery(body, { sign, url })), ...parts })
}

const fail = () => {
  throw new Error(thrown)
}

export interface Scenario {
  readonly status: number
  readonly level: LogLevel
  /** `true` if the delivery was parsed. */
  readonly event: boolean
  /** Makes a delivery with this outcome. */
  run(given: Given): Promise<Acknowledgement>
}

/** A scenario for every outcome. The type makes sure that none is missing. */
export const scenarios: Record<DeliveryOutcome, Scenario> = {
  accepted: { status: 200, level: 'debug', event: true, run: (given) => send(given) },
  duplicate: {
    status: 200,
    level: 'debug',
    event: true,
    run: (given) => send(given, { inbox: answeringInbox(() => 'duplicate') }),
  },
  ignored: { status: 200, level: 'debug', event: true, run: (given) => send(given, { handlers: {} }) },
  test: {
    status: 200,
    level: 'debug',
    event: true,
    run: (given) => send(given, {}, JSON.stringify(testPayload)),
  },
  challenge: {
    status: 200,
    level: 'debug',
    event: false,
    run: (given) => send(given, { sender: asking, handlers: {} }),
  },
  handled: { status: 200, level: 'debug', event: true, run: (given) => send(given, { ack: 'handled' }) },
  unauthorized: {
    status: 401,
    level: 'warn',
    event: false,
    run: (given) => sendAltered(given, { url: `/webhooks/media?token=${sensitive.guess}` }),
  },
  malformed: {
    status: 400,
    level: 'warn',
    event: false,
    run: (given) => send(given, {}, JSON.stringify({ ...payload, media_id: [sensitive.field] })),
  },
  incomplete: {
    status: 400,
    level: 'info',
    event: false,
    run: (given) => sendAltered(given, { body: () => 'incomplete' }),
  },
  method_not_allowed: {
    status: 405,
    level: 'info',
    event: false,
    run: (given) => sendAltered(given, { method: 'PUT' }),
  },
  unsupported_media_type: {
    status: 415,
    level: 'warn',
    event: false,
    run: (given) => sendAltered(given, { headers: new Headers({ 'content-type': `text/${sensitive.field}` }) }),
  },
  too_large: { status: 413, level: 'warn', event: false, run: (given) => send(given, { maxBodyBytes: 100 }) },
  overloaded: {
    status: 503,
    level: 'warn',
    event: true,
    run: (given) => send(given, { inbox: answeringInbox(() => 'overloaded') }),
  },
  closing: {
    status: 503,
    level: 'info',
    event: false,
    async run(given) {
      const receiver = receiverOf(given)
      await receiver.close()
      return deliver(receiver, body, { sign, url })
    },
  },
  unavailable: {
    status: 503,
    level: 'error',
    event: true,
    run: (given) => send(given, { inbox: answeringInbox(() => Promise.reject(new Error(thrown))) }),
  },
  in_progress: {
    status: 503,
    level: 'info',
    event: true,
    run: (given) =>
      send(given, { ack: 'handled', ackTimeoutMs: 1, handlers: { 'encoding.finished': () => new Promise(() => {}) } }),
  },
  handler_failed: {
    status: 500,
    level: 'warn',
    event: true,
    run: (given) => send(given, { ack: 'handled', handlers: { 'encoding.finished': fail } }),
  },
  body_consumed: {
    status: 500,
    level: 'error',
    event: false,
    run: (given) =>
      sendAltered(
        given,
        { body: { parsed: JSON.parse(body) } },
        { verify: hmacSignature({ ...token, header: 'x-signature' }) },
      ),
  },
  internal: { status: 500, level: 'error', event: false, run: (given) => send(given, { eventKey: fail }) },
}
