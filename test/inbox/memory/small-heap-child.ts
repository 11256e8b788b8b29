import { setImmediate as nextTurn } from 'node:timers/promises'
import { createReceiver, PermanentFailure, unverified } from '../../../src/index.ts'
import { deliver } from '../../../src/testing/index.ts'
import { silent } from '../../support/silent.ts'

// Sends bodies of almost 64 KiB, made to take as much memory as they can, until everything that keeps events is full.

const maxBytes = 65_000
const rounds = 100

let release = () => {}
const released = new Promise<void>((resolve) => {
  release = resolve
})

const receiver = createReceiver({ verify: unverified(), logger: silent })
  .on('partial.finished', () => released)
  .on('encoding.failed', () => {
    throw new PermanentFailure('it became a dead letter')
  })
  .expect('file.received', { then: 'encoding.finished', within: '2 h' }, () => {})

const repeated = (text: string, maxCount = Number.POSITIVE_INFINITY) =>
  text.repeat(Math.min(maxCount, Math.floor(maxBytes / Buffer.byteLength(text))))

/** The members of a payload, which waste memory in different ways. */
const wastes: Readonly<Record<string, string>> = {
  'too many values': `"extra":[${repeated('{},')}0]`,
  'many values': `"extra":[${repeated('{"a":0},', 2_000)}0],"title":"${'t'.repeat(48_000)}"`,
  'many keys': `"extra":{${Array.from({ length: 4_000 }, (_, index) => `"key${index}":{}`).join()}}`,
  'many names': `"qualities":"${repeated('aa,')}"`,
  'two bytes for each character': `"title":"€${'t'.repeat(64_000)}"`,
}

const answers: Record<string, Record<number, number>> = {}
let sent = 0

async function send(kind: string, type: string, waste: string, mediaId = `${++sent}`): Promise<number> {
  const { status } = await deliver(receiver, `{"type":"${type}","media_id":"${mediaId}",${waste}}`)
  answers[kind] = { ...answers[kind], [status]: (answers[kind]?.[status] ?? 0) + 1 }
  await nextTurn()
  return status
}

for (const type of ['file.received', 'encoding.finished'])
  for (let round = 0; round < 4 * rounds; round++)
    await send(`${type}: long media id`, type, '"title":"t"', `${++sent}${'m'.repeat(64_000)}`)
for (const type of ['encoding.failed', 'file.received', 'partial.finished'])
  for (let round = 0; round < rounds; round++)
    for (const [name, waste] of Object.entries(wastes)) await send(`${type}: ${name}`, type, waste)

const stats = await receiver.inbox.stats()
release()
while ((await receiver.inbox.stats()).waiting > 0) await nextTurn()
const afterwards = await send('afterwards', 'partial.finished', '"title":"t"')
process.send?.({ answers, stats, afterwards })
process.disconnect?.()
process.exit()
