import { expect, test } from 'vitest'
import { createReceiver, type MediaEvent, unverified } from '../../src/index.ts'
import { silent } from '../support/silent.ts'
import { envelope, eventOf, flat } from './received.ts'

const changes: [what: string, change: (event: MediaEvent) => void][] = [
  ['a field', (event) => Object.assign(event, { title: 'changed' })],
  ['a new field', (event) => Object.assign(event, { added: 1 })],
  ['its qualities', ({ qualities }) => (qualities as string[]).push('4k')],
  ['its issues', ({ issues }) => (issues as string[]).push('title')],
  ['what its payload holds', ({ payload }) => (payload['list'] as number[]).push(2)],
  ['its payload', ({ payload }) => Object.assign(payload, { title: 'changed' })],
]

test.each(changes)('a handler cannot change %s of an event that other handlers share', async (_, change) => {
  const list = [1]
  const payloads = [
    { ...flat, qualities: '360p', title: 7, list },
    { ...flat, type: 'partial.finished', list },
    { ...envelope(), list },
  ]
  for (const eventKey of [undefined, () => 'a key']) {
    for (const payload of payloads) {
      const event = await eventOf(payload, eventKey && { eventKey })
      const before = structuredClone(event)
      expect(() => change(event)).toThrow(TypeError)
      expect(event).toEqual(before)
    }
  }
})

test('a body that another parser made still belongs to the application, which can change it', async () => {
  const parsed = { ...flat, title: 'sent', more: { list: ['sent'] } }
  const events: MediaEvent[] = []
  const receiver = createReceiver({ verify: unverified(), logger: silent }).onAny((event) => void events.push(event))
  await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body: { parsed } })
  parsed.title = 'changed'
  parsed.more.list.push('changed')
  await receiver.close()
  expect(events).toMatchObject([{ title: 'sent', payload: { title: 'sent', more: { list: ['sent'] } } }])
})
