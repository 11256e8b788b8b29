import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { toDelivery } from '../../adapters/node.ts'
import { mountListener, type Receives } from '../support/mounts.ts'
import { failuresOf } from './failures-of.ts'
import { adapterContract } from './suites/adapter.ts'

/** Answers as soon as it can, and leaves the rest to Node. */
const plain =
  (receiver: Receives): RequestListener =>
  async (request, response) => {
    const { status, headers, body } = await receiver.receive(toDelivery(request))
    response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body)
  }

/** The fault, the adapter that has it, and the check that catches it. */
const wrongAdapters: [string, (receiver: Receives) => RequestListener, string][] = [
  ['reads a rejected body for ever', plain, 'ends the connection of a rejected sender whose body in chunks never ends'],
  [
    'cuts the connection while the sender still sends',
    (receiver) => async (request, response) => {
      const { status, headers, body } = await receiver.receive(toDelivery(request))
      response.writeHead(status, { ...headers, connection: 'close' }).end(body)
      if (!request.complete) request.socket.destroy()
    },
    'lets a sender finish sending, so that it reads the rejection',
  ],
  [
    'writes a body for HEAD',
    (receiver) => async (request, response) => {
      const { status, headers, body } = await receiver.receive(toDelivery(request))
      try {
        response.writeHead(status, headers).end(body)
      } catch {
        response.destroy()
      }
    },
    'answers HEAD without a body, which the next answer on the connection would follow',
  ],
  [
    'answers before it has read the body',
    (receiver) => async (request, response) => {
      request.pause()
      const { status, headers, body } = await receiver.receive({ ...toDelivery(request), body: new Uint8Array() })
      response.writeHead(status, headers).end(body)
      await once(response, 'close')
    },
    'answers accepted with 200',
  ],
]

describe('the contract of an adapter finds one that', () => {
  test.each(wrongAdapters)('%s', async (_, listener, check) => {
    const mount = (receiver: Receives) => mountListener(listener(receiver))
    expect(Object.keys(await failuresOf((runner) => adapterContract(mount, runner), check))).toEqual([check])
  })
})
