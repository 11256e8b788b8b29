import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect } from 'vitest'
import { defineStore, type IdempotencyStore, lruStore } from '../../../src/index.ts'
import { createCourier } from '../../../src/service/emulator/sending/courier.ts'
import { silent } from '../../support/silent.ts'
import { freshBody, send, textOf, verify, verifyToken, withToken } from '../sending.ts'
import { running, type Subject } from '../subject.ts'

const sender = createCourier()
const impatient = createCourier({ timeoutMs: 50 })

/** A handler that waits until the test lets it continue, and counts its effects when it ends. */
function heldHandler() {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let effects = 0
  const handle = async () => {
    await released
    effects += 1
  }
  return { handle, release, effects: () => effects }
}

export async function slowHandler(subject: Subject): Promise<void> {
  const { handle, release, effects } = heldHandler()
  const body = textOf(freshBody())
  await running(subject, { verify: verifyToken, handle, logger: silent }, async (url) => {
    try {
      const first = await sender.deliver(withToken(url), body)
      // The sender repeats it, as if the answer had been lost.
      const second = await sender.deliver(withToken(url), body)
      expect([first.answer?.status, second.answer?.status, effects()]).toEqual([200, 200, 0])
    } finally {
      release()
    }
  })
  expect(effects()).toBe(1)
}

export async function slowHandlerAndTimeout(subject: Subject): Promise<void> {
  const { handle, release, effects } = heldHandler()
  const body = textOf(freshBody())
  await running(subject, { verify: verifyToken, handle, logger: silent, ack: 'handled' }, async (url) => {
    try {
      const first = await impatient.deliver(withToken(url), body)
      const second = await impatient.deliver(withToken(url), body)
      expect([first.failure?.reason, second.failure?.reason]).toEqual(['timeout', 'timeout'])
    } finally {
      release()
    }
    expect((await sender.deliver(withToken(url), body)).answer?.status).toBe(200)
  })
  expect(effects()).toBe(1)
}

export async function refusedConnection(subject: Subject): Promise<void> {
  let effects = 0
  const body = textOf(freshBody())
  const port = await freePort()
  const url = withToken(`http://127.0.0.1:${port}/webhooks/media`)
  expect((await sender.deliver(url, body)).failure?.message).toBe('ECONNREFUSED')
  const handle = () => {
    effects += 1
  }
  await running(subject, { verify: verifyToken, handle, logger: silent, port }, async () => {
    expect((await sender.deliver(url, body)).answer?.status).toBe(200)
  })
  expect(effects).toBe(1)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Delivers an event before and after a restart of the receiver. Returns how often it was handled. */
async function handledAcrossRestart(subject: Subject, store?: IdempotencyStore): Promise<number> {
  let effects = 0
  const handle = () => {
    effects += 1
  }
  const body = freshBody()
  for (let start = 0; start < 2; start++) {
    const options = { verify, handle, logger: silent, ...(store && { store }) }
    await running(subject, options, async (url) => expect((await send(url, body)).status).toBe(200))
  }
  return effects
}

export async function restartWithSharedStore(subject: Subject): Promise<void> {
  expect(await handledAcrossRestart(subject, lruStore())).toBe(1)
}

/** Shows the documented limit of a store in memory. */
export async function restartWithOwnStore(subject: Subject): Promise<void> {
  expect(await handledAcrossRestart(subject)).toBe(2)
}

export async function failedBookkeeping(subject: Subject): Promise<void> {
  let effects = 0
  const handle = () => {
    effects += 1
  }
  const { store, failed } = storeThatFailsToComplete()
  const body = freshBody()
  await running(subject, { verify, handle, logger: silent, store, leaseMs: 300 }, async (url) => {
    await send(url, body)
    await failed
    expect((await send(url, body)).status).toBe(200)
  })
  expect(effects).toBe(1)
}

/** A store whose first completion fails, and a promise that resolves when it does. */
function storeThatFailsToComplete() {
  const lru = lruStore()
  let complete: IdempotencyStore['complete'] = lru.complete
  const failed = new Promise<void>((resolve) => {
    complete = () => {
      complete = lru.complete
      resolve()
      throw new Error('the store is out of reach')
    }
  })
  const store = defineStore({ ...lru, complete: (key, owner) => complete(key, owner) })
  return { store, failed }
}
