import { request as requestHttp } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { mountListener } from '../support/mounts.ts'

/** A server in front of one worker at a time, as a platform has one in front of the versions of a worker. */
export interface Front {
  readonly url: string
  /** Sends requests to another worker from now on. Those in flight stay with theirs. */
  lead(to: string): Promise<void>
  close(): Promise<void>
}

/** The pause between two deliveries in which the worker is exchanged, in ms: a delivery and its duplicate belong together. */
const quietMs = 20

/** Starts the server on 127.0.0.1. */
export async function startFront(first: string): Promise<Front> {
  let origin = first
  let inFlight = 0
  let lastAt = 0
  const { url, close } = await mountListener((incoming, response) => {
    inFlight++
    lastAt = performance.now()
    const { method, headers, url = '' } = incoming
    const outgoing = requestHttp(new URL(url, origin), { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode as number, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    incoming.on('error', () => outgoing.destroy()).pipe(outgoing)
    response.on('close', () => {
      inFlight--
      // The sender has disconnected.
      if (!response.writableFinished) outgoing.destroy()
    })
  })
  return {
    url,
    close,
    async lead(to) {
      while (inFlight > 0 || performance.now() - lastAt < quietMs) await sleep(2)
      origin = to
    },
  }
}
