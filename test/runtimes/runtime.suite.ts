import { createHmac } from 'node:crypto'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createEmulator } from '../../src/service/emulator/index.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { mountListener } from '../support/mounts.ts'
import { postJson } from '../support/post-json.ts'
import type { Program } from '../support/program.ts'

type Signed = { readonly query?: string; readonly headers?: Record<string, string> }

/**
 * The credentials that a sender adds to a body, for each verifier of app.js. They are made without the package, which
 * could make the same mistake twice.
 */
const signers: Record<string, (body: string, secret: string) => Signed> = {
  '/url-token': (_body, secret) => ({ query: `?token=${secret}` }),
  '/hmac': (body, secret) => ({ headers: { 'x-signature': createHmac('sha256', secret).update(body).digest('hex') } }),
  '/standard-webhooks': (body, secret) => {
    const timestamp = Math.floor(Date.now() / 1000)
    const id = `msg_${createHmac('sha1', 'id').update(body).digest('hex')}`
    const mac = createHmac('sha256', `${secret}-of-24-bytes`).update(`${id}.${timestamp}.${body}`).digest('base64')
    return { headers: { 'webhook-id': id, 'webhook-timestamp': `${timestamp}`, 'webhook-signature': `v1,${mac}` } }
  },
}

/**
 * Proves the built package on a runtime.
 * @param start starts the runtime on app.js, which lies in `folder`, from which the package can be imported
 */
export function proveRuntime(
  name: Parameters<typeof findRuntime>[0],
  start: (binary: string, folder: string) => Promise<Program>,
): void {
  const binary = findRuntime(name)
  const ack = name === 'workerd' ? 'handled' : 'accepted'

  describe.skipIf(binary === undefined)(name, () => {
    let runtime: Program
    let origin: string
    beforeAll(async () => {
      const folder = join(inject('userFolder'), `on-${name}`)
      await cp(fileURLToPath(new URL('.', import.meta.url)), folder, { recursive: true })
      runtime = await start(binary as string, folder)
      origin = `http://127.0.0.1:${runtime.captured}`
    })
    afterAll(() => runtime?.stop())

    async function post(path: string, body: string, { query = '', headers = {} }: Signed) {
      const response = await postJson(`${origin}${path}${query}`, body, headers)
      return { status: response.status, body: await response.json() }
    }

    /** Posts a body until it is acknowledged, as a sender does, if its handlers may fail before that. */
    async function deliver(path: string, body: string, signed: Signed) {
      let answer = await post(path, body, signed)
      for (let i = 0; ack === 'handled' && answer.status >= 500 && i < 20; i++) answer = await post(path, body, signed)
      expect(answer.status).toBe(200)
    }

    const handled = async () => (await (await fetch(`${origin}/handled`)).json()) as string[]

    describe.each(Object.entries(signers))('the fetch adapter at %s', (path, sign) => {
      const bodyOf = (mediaId: string, fields: object = {}) =>
        JSON.stringify({ type: 'encoding.finished', media_id: mediaId, ...fields })

      test('accepts a delivery, knows its duplicate and handles the event once', async () => {
        const mediaId = `${path} one`
        const body = bodyOf(mediaId)
        expect(await post(path, body, sign(body, 'a-secret'))).toEqual({ status: 200, body: { status: ack } })
        expect(await post(path, body, sign(body, 'a-secret'))).toEqual({ status: 200, body: { status: 'duplicate' } })
        await expect.poll(handled).toContain(mediaId)
        expect(await post(path, body, sign(body, 'a-secret'))).toEqual({ status: 200, body: { status: 'duplicate' } })
        expect((await handled()).filter((each) => each === mediaId)).toHaveLength(1)
      })

      test('handles every event of a burst, also those that wait for others of their media item or for a retry', async () => {
        const media = Array.from({ length: 30 }, (_, index) => `${path} of many ${index}`)
        const bodies = media.flatMap((id) => [bodyOf(id), bodyOf(id, { title: 'fails once' })])
        await Promise.all(bodies.map((body) => deliver(path, body, sign(body, 'a-secret'))))
        const handledOfMany = async () => (await handled()).filter((each) => each.startsWith(`${path} of many`)).sort()
        await expect.poll(handledOfMany).toEqual([...media, ...media].sort())
      })

      test('ends the time of a handler that hangs, after any earlier deliveries', async () => {
        const first = bodyOf(`${path} before`)
        await deliver(path, first, sign(first, 'a-secret'))
        await expect.poll(handled).toContain(`${path} before`)
        const hanging = bodyOf(`${path} hanging`, { title: 'hangs once' })
        await deliver(path, hanging, sign(hanging, 'a-secret'))
        await expect.poll(handled).toContain(`${path} hanging`)
      })

      test.each([
        { fault: 'a forged delivery', body: bodyOf('forged'), secret: 'a-guess', status: 401, code: 'unauthorized' },
        { fault: 'a malformed delivery', body: '{"type":', secret: 'a-secret', status: 400, code: 'malformed' },
        {
          fault: 'an oversized delivery',
          body: bodyOf('x'.repeat(70_000)),
          secret: 'a-secret',
          status: 413,
          code: 'too_large',
        },
      ])('answers $status to $fault', async ({ body, secret, status, code }) => {
        const answer = await post(path, body, sign(body, secret))
        expect(answer).toMatchObject({ status, body: { status: 'error', code } })
      })
    })

    test('the client creates, registers, lists, changes and deletes, gives up in time and says why', async () => {
      const emulator = await createEmulator()
      const slow = await mountListener(() => {})
      const moved = await mountListener((_, response) => response.writeHead(307, { location: emulator.url }).end())
      try {
        const query = new URLSearchParams({
          baseUrl: emulator.url,
          accessToken: emulator.credentials.accessToken,
          slowUrl: slow.url,
          movedUrl: moved.url,
        })
        const used = await fetch(`${origin}/client?${query}`)
        expect(await used.json()).toEqual({
          actions: ['created', 'unchanged'],
          listed: [{ encodingFinished: true, status: 'success', message: expect.any(String) }],
          codes: [
            'ApiError not_found',
            'ApiError invalid_params',
            'ApiError unauthorized',
            'ApiError timeout',
            'ApiError aborted',
            'ApiError bad_answer',
          ],
        })
      } finally {
        for (const service of [emulator, slow, moved]) await service.close()
      }
    })
  })
}
