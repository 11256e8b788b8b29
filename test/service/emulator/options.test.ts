import { describe, expect, test } from 'vitest'
import { createEmulator, type EmulatorOptions } from '../../../src/service/emulator/index.ts'
import { ask } from './ask.ts'
import { api, emulate } from './started-emulator.ts'

describe('createEmulator', () => {
  test('listens on a free port and generates its credentials', async () => {
    const [one, other] = [await emulate(), await emulate()]
    expect(one.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(other.url).not.toBe(one.url)
    expect(new Set([...Object.values(one.credentials), ...Object.values(other.credentials)]).size).toBe(6)
    expect((await api(one, 'GET', '/webhooks')).body).toEqual({ status: 'success', data: { webhooks: [], total: 0 } })
    expect((await ask(`${one.url}/api/webhooks`)).status).toBe(401)
  })

  test('uses the given credentials', async () => {
    const credentials = { publicKey: 'public', secretKey: 'secret', accessToken: 'token' }
    const emulator = await emulate(credentials)
    expect(emulator.credentials).toEqual(credentials)
    const keyPair = { 'stream-public-key': 'public', 'stream-secret-key': 'secret' }
    expect((await ask(`${emulator.url}/api/webhooks`, { headers: keyPair })).status).toBe(200)
    expect((await api(emulator, 'GET', '/webhooks')).status).toBe(200)
  })

  test('uses the given port, and a second emulator on it fails with the reason', async () => {
    const { url } = await emulate()
    const port = Number(new URL(url).port)
    await expect(createEmulator({ port })).rejects.toMatchObject({
      code: 'invalid_option',
      message: `createEmulator: port ${port} is in use: choose another one, or 0 for a free one`,
    })
  })

  test.each<[object, string]>([
    [{ port: -1 }, 'port must be a whole number from 0 to 65535'],
    [{ port: 65_536 }, 'port must be a whole number from 0 to 65535'],
    [{ port: '4010' }, 'port must be a whole number from 0 to 65535'],
    [{ profile: 'fast' }, 'profile must be one of documented, observed'],
    [{ timeScale: -1 }, 'timeScale must be a number from 0 to 1000'],
    [{ timeScale: Number.NaN }, 'timeScale must be a number from 0 to 1000'],
    [{ timeScale: '1' }, 'timeScale must be a number from 0 to 1000'],
    [{ maxWaiting: 0 }, 'maxWaiting must be a whole number from 1 to'],
    [{ maxRecords: 1.5 }, 'maxRecords must be a whole number from 1 to'],
    [{ clock: 5 }, 'clock must be a function'],
    [{ clock: Date.now }, 'clock must be a function that returns the nanoseconds since 1970, as a bigint'],
    [{ clock: () => undefined }, 'clock must be a function that returns the nanoseconds since 1970'],
    [{ clock: () => -1n }, 'clock must be a function that returns the nanoseconds since 1970'],
    [{ clock: () => 10n ** 24n }, 'clock must be a function that returns the nanoseconds since 1970'],
    [{ publicKey: '' }, 'publicKey must be printable ASCII without spaces'],
    [{ secretKey: 's3cret\n' }, 'secretKey must be printable ASCII without spaces'],
    [{ accessToken: 's3 cret' }, 'accessToken must be printable ASCII without spaces'],
    [{ accessToken: 'gehäim' }, 'accessToken must be printable ASCII without spaces'],
    [{ secretKey: null }, 'secretKey must be printable ASCII without spaces'],
    [{ timescale: 1, toString: 1 }, 'there is no option timescale; there are port, profile, timeScale, '],
    [{ publicKey: 'a:b' }, 'publicKey must not contain a colon'],
  ])('rejects %j', async (options, message) => {
    const error = await createEmulator(options as EmulatorOptions).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'invalid_option', message: expect.stringContaining(message) })
    expect((error as Error).message).not.toMatch(/s3|gehäim/)
  })
})
