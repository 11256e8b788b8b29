import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { getActiveResourcesInfo } from 'node:process'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { Outbox, type OutboxOptions } from '../../../../src/service/emulator/sending/outbox.ts'
import type { DeliveryRecord, Sending } from '../../../../src/service/emulator/sending/sending.ts'
import { Changes } from '../../../../src/service/emulator/shared/changes.ts'
import { systemClock } from '../../../../src/service/emulator/shared/clock.ts'
import { samplePayload } from '../../../../src/testing/index.ts'
import { listenUntilEnd } from '../../../support/serve.ts'

/** Listens on a free port while the test runs; `url` is its address. */
export async function listen(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const { server, origin } = await listenUntilEnd(listener)
  return { server, url: `${origin}/webhooks/media` }
}

/** Listens for raw connections while the test runs. */
export async function listenTcp(listener: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    listener(socket)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await once(server, 'listening')
  return urlOf(server)
}

const urlOf = (server: { address(): unknown }) =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/media`

/** Returns a URL without a server. */
export async function refusingUrl(): Promise<string> {
  const { server, url } = await listen(() => {})
  server.close()
  await once(server, 'close')
  return url
}

/** Answers with each status in turn and then repeats the last one. It records the requests. */
export async function listenAndAnswer(...statuses: number[]) {
  const received: { request: IncomingMessage; body: string }[] = []
  const { url } = await listen(async (request, response) => {
    received.push({ request, body: await text(request) })
    const status = statuses[Math.min(received.length, statuses.length) - 1] ?? 200
    response.writeHead(status, { location: url }).end(status === 204 ? undefined : 'answer')
  })
  return { url, received }
}

/** Creates an outbox that is closed after the test. Its pauses are a thousandth: a retry follows after 3 ms. */
export function outboxWith(options: Partial<OutboxOptions> = {}) {
  const outbox = new Outbox({
    profile: 'documented',
    timeScale: 0.001,
    maxWaiting: 10_000,
    maxRecords: 2_000,
    clock: systemClock,
    changes: new Changes(),
    triggered: () => {},
    delivered: () => {},
    ...options,
  })
  onTestFinished(() => outbox.close())
  return outbox
}

/** Makes a payload of the media with this id. */
export const payloadOf = (mediaId: string) => samplePayload('encoding.finished', { media_id: mediaId })

/** Returns the id of the media in a body. */
export const mediaIdOf = (body: string): string => JSON.parse(body).media_id

/** Returns the result of a delivery in a word. */
export const outcomeOf = ({ failure, answer }: DeliveryRecord) => failure?.reason ?? answer?.status

/** Returns the results of a sending's deliveries. */
export const outcomesOf = (sending: Sending | undefined) => sending?.deliveries.map(outcomeOf)

/** Counts the timers in this process. Fewer than 10 belong to the test runner. */
export const timers = () => getActiveResourcesInfo().filter((name) => name === 'Timeout').length
