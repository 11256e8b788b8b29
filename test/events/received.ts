import {
  type Acknowledgement,
  createReceiver,
  type LookedUpEvent,
  lruStore,
  type MediaEvent,
  memoryInbox,
  type ReceiverOptions,
  unverified,
} from '../../src/index.ts'
import { type DeliverOptions, deliver } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'

/** A payload as a test writes it: a string, bytes, or a value for `JSON.stringify`. */
export type Content = string | Uint8Array | object

export const mediaId = '0f8fad5b-d9cb-469f-a165-70867728950e'
/** The smallest payload of an event, in each format. */
export const flat = { type: 'encoding.finished', media_id: mediaId }
export const envelope = (data: object = {}, event = 'encoding.finished') => ({
  event,
  data: { videoId: mediaId, ...data },
})

interface Received {
  readonly acknowledgement: Acknowledgement
  readonly event: MediaEvent | undefined
}

/** Delivers a payload to a new receiver that handles every event. */
export async function receive(
  content: Content,
  options: Partial<ReceiverOptions> = {},
  how: DeliverOptions = {},
): Promise<Received> {
  let event: MediaEvent | undefined
  const receiver = createReceiver({
    verify: unverified(),
    inbox: memoryInbox({ store: lruStore({ max: 10 }), maxWaiting: 10 }),
    logger: silent,
    ...options,
  })
  const keep = (each: MediaEvent) => {
    event = each
  }
  receiver.onAny(keep, { tests: true })
  const body = typeof content === 'string' || content instanceof Uint8Array ? content : JSON.stringify(content)
  const { handled, ...acknowledgement } = await deliver(receiver, body, how)
  await handled
  return { acknowledgement, event }
}

/** Returns the event that a payload is parsed into. */
export async function eventOf(content: Content, options?: Partial<ReceiverOptions>): Promise<MediaEvent> {
  const { event, acknowledgement } = await receive(content, options)
  if (event === undefined) throw new Error(`no event, but ${acknowledgement.body}`)
  return event
}

/** Returns the answer to a payload that is rejected, as `status code: message`. */
export async function rejectionOf(content: Content, options?: Partial<ReceiverOptions>): Promise<string> {
  const { status, body } = (await receive(content, options)).acknowledgement
  const { code, message } = JSON.parse(body)
  return `${status} ${code}: ${message}`
}

/** Returns the event of a look-up that a new receiver accepts. */
export async function lookedUp(found: LookedUpEvent, options?: Partial<ReceiverOptions>): Promise<MediaEvent> {
  const receiver = createReceiver({ verify: unverified(), logger: silent, ...options })
  return new Promise((resolve, reject) => {
    receiver.onAny(resolve, { tests: true })
    receiver.accept(found).catch(reject)
  })
}
