import type { MediaEvent } from '../../../../src/events/media-service/catalogue.ts'
import type { Logger } from '../../../../src/internal/logger.ts'
import type { DeliveryOutcome } from '../../../../src/receiver/delivery.ts'
import type { Receiver, ReceiverOptions } from '../../../../src/receiver/options.ts'
import { createReceiver } from '../../../../src/receiver/receiver.ts'
import { makeDelivery } from '../../../../src/testing/deliver.ts'
import type { Runner } from '../../../../src/testing/runner.ts'
import { encodePayload, samplePayload } from '../../../../src/testing/samples.ts'
import type { Signer } from '../../../../src/testing/signers.ts'
import { unverified } from '../../../../src/verify/unverified.ts'
import { type Answer, type Connection, connectTo, type Fields, requestHead } from './connection.ts'

/** A mounted receiver that is listening. */
export interface Mounted {
  readonly url: string
  close(): Promise<void>
}

/** Mounts a receiver with the adapter, for every method, on its own server. */
export type MountAdapter = (receiver: Pick<Receiver, 'receive'>) => Promise<Mounted>

export interface PostOptions {
  readonly method?: string
  readonly sign?: Signer
  /** Headers besides the signature's. Default: the content type. */
  readonly fields?: Fields
}

/** A receiver behind the adapter, with the outcomes of its deliveries. */
export interface Fixture {
  readonly receiver: Receiver
  readonly url: string
  readonly outcomes: DeliveryOutcome[]
  readonly handled: MediaEvent[]
  /** Counts deliveries passed on by the adapter that are not acknowledged yet. */
  readonly pending: () => number
  /** Resolves once the condition holds. Checked when a delivery arrives and when it is acknowledged. */
  until(condition: () => boolean): Promise<void>
  /** Opens a connection, closed after the test. */
  connect(): Promise<Connection>
  /** Sends a delivery in one piece on a connection, and keeps the connection open. */
  send(connection: Connection, body: Uint8Array, options?: PostOptions): Promise<Answer>
  /** Sends a delivery on a new connection. */
  post(body: Uint8Array, options?: PostOptions): Promise<Answer>
}

const json: Fields = [['Content-Type', 'application/json']]
const ignore = () => {}
const silent: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }

export function freshBody(): Uint8Array {
  return encodePayload(samplePayload('encoding.finished', { media_id: crypto.randomUUID() }))
}

/** Returns the body of a new event, padded to a length in bytes. */
export function bodyOfLength(length: number): Uint8Array {
  const body = freshBody()
  const padded = new Uint8Array(length).fill(' '.charCodeAt(0))
  padded.set(body)
  return padded
}

/** Returns a function that defines a test with its own fixture, closed afterwards. */
export function fixtures(mount: MountAdapter, { test }: Pick<Runner, 'test'>) {
  return (name: string, run: (fixture: Fixture) => Promise<void>, options?: () => Partial<ReceiverOptions>): void => {
    test(name, async () => {
      const { fixture, close } = await openFixture(mount, options?.() ?? {})
      try {
        await run(fixture)
      } finally {
        await close()
      }
    })
  }
}

async function openFixture(mount: MountAdapter, options: Partial<ReceiverOptions>) {
  const outcomes: DeliveryOutcome[] = []
  const handled: MediaEvent[] = []
  const connections: Connection[] = []
  let pending = 0
  let onChange = ignore
  const receiver = createReceiver({
    verify: unverified(),
    logger: silent,
    handlers: { 'encoding.finished': (event) => handled.push(event) },
    ...options,
  })
  const watched: Pick<Receiver, 'receive'> = {
    async receive(delivery) {
      pending++
      onChange()
      const acknowledgement = await receiver.receive(delivery)
      pending--
      outcomes.push(acknowledgement.outcome)
      onChange()
      return acknowledgement
    },
  }
  const { url, close } = await mount(watched)

  const connect = async () => {
    const connection = await connectTo(url)
    connections.push(connection)
    return connection
  }
  const fixture: Fixture = {
    receiver,
    url,
    outcomes,
    handled,
    pending: () => pending,
    async until(condition) {
      while (!condition()) {
        await new Promise<void>((resolve) => {
          onChange = resolve
        })
      }
    },
    connect,
    async send(connection, body, { method = 'POST', sign, fields = json } = {}) {
      const signed = await signedHead(body, url, sign)
      const length = ['Content-Length', String(body.byteLength)] as const
      const head = requestHead(method, signed.url, [...fields, ...signed.fields, length])
      connection.send(Buffer.concat([Buffer.from(head), body]))
      return connection.answer(method)
    },
    post: async (body, post) => fixture.send(await connect(), body, post),
  }
  return {
    fixture,
    async close() {
      for (const connection of connections) connection.destroy()
      await close()
      await receiver.close({ timeoutMs: 1 })
    },
  }
}

async function signedHead(body: Uint8Array, url: string, sign: Signer | undefined) {
  const delivery = await makeDelivery(body, { url, ...(sign && { sign }) })
  const fields: Fields = [...(delivery.headers as Headers)].filter(([name]) => name !== 'content-type')
  return { url: delivery.url, fields }
}
