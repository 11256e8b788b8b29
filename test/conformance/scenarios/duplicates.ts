import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'vitest'
import { defineStore, type IdempotencyStore, lruStore } from '../../../src/index.ts'
import { encodePayload } from '../../../src/testing/index.ts'
import { lifecycle } from '../../service/emulator/media/lifecycle-payloads.ts'
import { silent } from '../../support/silent.ts'
import { freshBody, send, sendAtOnce, verify } from '../sending.ts'
import { type HandledEvent, running, type Subject } from '../subject.ts'

/** Runs a receiver that records the types it handles, and closes it before they are checked. */
async function handledDuring(subject: Subject, attempt: (url: string) => Promise<void>, store?: IdempotencyStore) {
  const handled: string[] = []
  const handle = ({ type }: HandledEvent) => void handled.push(type)
  await running(subject, { verify, handle, logger: silent, ...(store && { store }) }, attempt)
  return handled
}

export async function singleValid(subject: Subject): Promise<void> {
  // The service escapes characters that could end a script. Parsing and writing the JSON again loses that.
  const body = freshBody({ title: '<映画> & \u2028 "quotes".mp4' })
  const handled = await handledDuring(subject, async (url) => {
    expect((await send(url, body)).status).toBe(200)
  })
  expect(handled).toEqual(['encoding.finished'])
}

export async function sequentialDuplicate(subject: Subject): Promise<void> {
  const body = freshBody()
  const handled = await handledDuring(subject, async (url) => {
    for (let i = 0; i < 3; i++) expect((await send(url, body)).status).toBe(200)
  })
  expect(handled).toEqual(['encoding.finished'])
}

export async function concurrentDuplicate(subject: Subject): Promise<void> {
  const body = freshBody()
  const handled = await handledDuring(
    subject,
    async (url) => {
      const answers = await sendAtOnce(20, url, body)
      expect(answers.map(({ status }) => status)).toEqual(new Array(20).fill(200))
    },
    slowStore(),
  )
  expect(handled).toEqual(['encoding.finished'])
}

/** A store that answers with a delay, like one across a network. */
function slowStore(): IdempotencyStore {
  const store = lruStore()
  const later = async <Answer>(answer: Answer) => {
    await turn()
    return answer
  }
  return defineStore({
    claim: async (...parameters) => later(await store.claim(...parameters)),
    renew: async (...parameters) => later(await store.renew(...parameters)),
    complete: async (...parameters) => later(await store.complete(...parameters)),
    release: async (...parameters) => later(await store.release(...parameters)),
  })
}

export async function orderReversal(subject: Subject): Promise<void> {
  const media = { id: crypto.randomUUID(), userId: 'user', title: 'a.mp4', qualities: ['360p', '720p'], receivedAt: 1n }
  const reversed = lifecycle(media).toReversed()
  const handled = await handledDuring(subject, async (url) => {
    for (const payload of reversed) expect((await send(url, encodePayload(payload))).status).toBe(200)
  })
  expect(handled).toEqual(reversed.map(({ type }) => type))
}
