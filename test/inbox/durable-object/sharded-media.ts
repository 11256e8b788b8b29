import { shardOf } from '../../../src/internal/storage/durable-objects.ts'
import { makeDelivery } from '../../../src/testing/deliver.ts'
import { encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { sign } from '../../conformance/sending.ts'
import type { App } from './app.ts'

export const shards = 4

/** Lists media ids that the objects of the given shards have. */
export function mediaIn(...wanted: readonly number[]): string[] {
  return wanted.map((shard) => {
    for (;;) {
      const id = crypto.randomUUID()
      if (shardOf(id, shards) === shard) return id
    }
  })
}

/** Makes a signed delivery, and returns the answer. */
export async function deliver(url: string | undefined, mediaId: string, fields: { title?: string } = {}) {
  const body = encodePayload(samplePayload('encoding.finished', { media_id: mediaId, ...fields }))
  return post(url as string, body)
}

export async function post(url: string, body: Uint8Array) {
  const { headers } = await makeDelivery(body, { url, sign })
  const answer = await fetch(url, {
    method: 'POST',
    headers: headers as Headers,
    body: body as Uint8Array<ArrayBuffer>,
  })
  return { ...((await answer.json()) as { status: string; code?: string }), http: answer.status }
}

/** The runs of the first handler for a media item: the workerd or `failed`, `cut off` or `done` of each. */
export const firstRuns = ({ evidence }: App, mediaId: string) =>
  evidence
    .of(mediaId)
    .filter(({ handler }) => handler === 'first')
    .map(({ endedAt, failed }) => (endedAt === undefined ? 'cut off' : failed ? 'failed' : 'done'))
