import type { RequestListener } from 'node:http'
import express, { type Express, type RequestHandler } from 'express'
import request from 'supertest'
import { expressHandler } from '../../adapters/express.ts'
import type { DeliveryHeaders } from '../../src/index.ts'
import { type DeliverOptions, makeDelivery } from '../../src/testing/index.ts'
import { express4 } from '../support/mounts.ts'
import { type bytes, freshBody, watchedReceiver } from './receivers.ts'

/** The path of the webhook in every application. */
export const path = '/webhooks/media'

/** Both versions of Express, for `describe.each`. */
export const versions: [string, typeof express][] = [
  ['Express 5', express],
  ['Express 4', express4],
]

/** The URL, the header fields and the body of one request. */
export interface SignedDelivery {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Signs a delivery of a new event, or of the given body. */
export async function signed(
  { sign }: Pick<typeof bytes, 'sign'>,
  { body = freshBody(), headers = {} }: { body?: Uint8Array; headers?: DeliverOptions['headers'] } = {},
): Promise<SignedDelivery> {
  const delivery = await makeDelivery(body, { url: path, sign, headers })
  return { url: delivery.url, headers: recordOf(delivery.headers), body }
}

const recordOf = (headers: DeliveryHeaders) => Object.fromEntries(headers as Headers)

/** Posts a delivery to an application. Continue with supertest's `expect`. */
export const post = (app: RequestListener, { url, headers, body }: SignedDelivery) =>
  // supertest's default serializer would write a Buffer as JSON.
  request(app)
    .post(url)
    .set(headers)
    .serialize((bytes) => bytes)
    .send(Buffer.from(body))

/** Makes an application with a watched receiver behind the given middleware. */
export function appBehind(
  create: typeof express,
  options: Parameters<typeof watchedReceiver>[0],
  ...middleware: RequestHandler[]
) {
  const watched = watchedReceiver(options)
  const app: Express = create()
  app.post(path, ...middleware, expressHandler(watched.receiver))
  return { ...watched, app }
}
