import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { serveWebhook } from '../../support/serve.ts'
import { ask } from './ask.ts'
import { answering, emulate, subscribe } from './started-emulator.ts'

describe('settled', () => {
  test('resolves immediately when nothing is unfinished', async () => {
    await (await emulate()).settled()
  })

  test('waits for every media item, even those added in the meantime, and for every retry', async () => {
    const emulator = await emulate()
    const [one, other] = [answering(503, 200), answering(200)]
    await subscribe(emulator, await serveWebhook(one))
    await subscribe(
      emulator,
      await serveWebhook((request, response) => {
        if (emulator.sendings().length < 20) emulator.addMedia()
        other(request, response)
      }),
    )
    emulator.addMedia()
    await emulator.settled()
    expect(emulator.sendings().length).toBeGreaterThanOrEqual(20)
    expect(new Set(emulator.sendings().map(({ state }) => state))).toEqual(new Set(['acknowledged']))
  })

  test('rejects after its timeout, and names what is unfinished', async () => {
    const emulator = await emulate({ timeScale: 1 })
    await subscribe(emulator, await serveWebhook(() => {}), ['file_received'])
    await subscribe(emulator, await serveWebhook(answering(500)), ['file_received'])
    emulator.addMedia()
    await expect
      .poll(() =>
        emulator
          .sendings()
          .map(({ state }) => state)
          .toSorted(),
      )
      .toEqual(['delivering', 'retrying'])
    await expect(emulator.settled({ timeoutMs: 20 })).rejects.toMatchObject({
      code: 'timeout',
      message: 'not settled after 20 ms: 1 media encoding, 1 event delivering, 1 event retrying',
    })
  })

  test('rejects when the emulator closes', async () => {
    const emulator = await emulate({ timeScale: 1 })
    emulator.addMedia()
    const settled = expect(emulator.settled()).rejects.toMatchObject({ code: 'closing' })
    await emulator.close()
    await settled
  })

  test.each([0, -1, 1.5, Number.NaN, 2 ** 31])('rejects a timeout of %d ms', async (timeoutMs) => {
    await expect((await emulate()).settled({ timeoutMs })).rejects.toMatchObject({ code: 'invalid_option' })
  })
})

describe('close', () => {
  test('stops listening and sending, cuts off deliveries, and can be called again', async () => {
    const emulator = await emulate({ timeScale: 1 })
    const cut: unknown[] = []
    const arrived = new Promise<void>((resolve) => {
      void serveWebhook((request) => {
        request.once('close', () => cut.push(request.url))
        resolve()
      }).then(async (url) => {
        await subscribe(emulator, url)
        emulator.addMedia()
      })
    })
    await arrived
    await Promise.all([emulator.close(), emulator.close()])
    await emulator.close()
    await expect.poll(() => cut).toHaveLength(1)
    await expect(ask(emulator.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect(() => emulator.addMedia()).toThrow(expect.objectContaining({ code: 'closing' }))
  })

  test('lets the process end', async () => {
    const path = fileURLToPath(new URL('./closing-child.ts', import.meta.url))
    const child = await promisify(execFile)(process.execPath, ['--import', 'tsx', path], { timeout: 120_000 })
    expect(child).toEqual({ stdout: 'closing\n', stderr: '' })
  })

  test('is what `await using` does', async () => {
    const emulator = await emulate()
    await emulator[Symbol.asyncDispose]()
    await expect(ask(emulator.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
