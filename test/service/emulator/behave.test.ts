import { describe, expect, test } from 'vitest'
import { hmacSignature, standardWebhooks, urlToken } from '../../../src/index.ts'
import type { Behaviour } from '../../../src/service/emulator/index.ts'
import { api, emulate, receive, subscribe } from './started-emulator.ts'

const lifecycle = ['file.received', 'encoding.started', 'partial.finished', 'partial.finished', 'encoding.finished']

describe('a behaviour', () => {
  const token = { secret: 'a token' }
  const hmac = { secret: 'a secret', header: 'x-signature' }
  const standard = { secret: 'whsec_YSBzaGFyZWQgc2VjcmV0' }

  test('applies to its webhook only', async () => {
    const emulator = await emulate()
    const receivers = [
      await receive({ verify: urlToken(token) }),
      await receive({ verify: hmacSignature(hmac) }),
      await receive({ verify: standardWebhooks(standard) }),
      await receive(),
    ]
    const behaviours: Behaviour[] = [
      { sign: { scheme: 'url-token', ...token } },
      { sign: { scheme: 'hmac-signature', ...hmac }, format: 'envelope' },
      { sign: { scheme: 'standard-webhooks', ...standard } },
    ]
    for (const [index, { url }] of receivers.entries()) {
      const { id } = await subscribe(emulator, url)
      const behaviour = behaviours[index]
      if (behaviour !== undefined) emulator.behave(id, behaviour)
    }
    emulator.addMedia()
    await emulator.settled()
    for (const { types } of receivers) expect(types()).toEqual(lifecycle.toSorted())
    expect(receivers.map(({ events }) => events[0]?.format)).toEqual(['flat', 'envelope', 'flat', 'flat'])
  })

  test('also applies to the check', async () => {
    const emulator = await emulate()
    const { url, events } = await receive({ verify: urlToken(token) })
    const { id } = await subscribe(emulator, url)
    expect((await api(emulator, 'POST', `/webhooks/check/${id}`)).status).toBe(401)
    emulator.behave(id, { sign: { scheme: 'url-token', ...token } })
    expect((await api(emulator, 'POST', `/webhooks/check/${id}`)).status).toBe(200)
    expect(events).toHaveLength(1)
  })

  test('of {} restores what the service does', async () => {
    const emulator = await emulate()
    const receiver = await receive()
    const { id } = await subscribe(emulator, receiver.url, ['file_received'])
    emulator.behave(id, { fault: 'drop' })
    emulator.addMedia()
    await emulator.settled()
    emulator.behave(id, {})
    emulator.addMedia()
    await emulator.settled()
    expect(emulator.sendings().map(({ state }) => state)).toEqual(['acknowledged', 'dropped'])
    expect(receiver.types()).toEqual(['file.received'])
  })

  test('is rejected for an unknown webhook, and when it is invalid', async () => {
    const emulator = await emulate()
    const { id } = await subscribe(emulator, 'http://127.0.0.1:1')
    const invalid = (message: string) => expect.objectContaining({ code: 'invalid_option', message })
    expect(() => emulator.behave('nobody', {})).toThrow(invalid('there is no webhook with this id'))
    expect(() => emulator.behave(id, { fault: 'x' } as object)).toThrow(
      invalid(expect.stringContaining('behaviour.fault must be one of') as unknown as string),
    )
  })
})
