import { expect, test } from 'vitest'
import { readForm } from '../../../../src/operate/dashboard/access/form.ts'
import { answerNode } from '../../../../src/operate/dashboard/access/node.ts'
import { linesType } from '../../../../src/operate/dashboard/access/respond.ts'
import type { NodeRequest, NodeResponse } from '../../../../src/operate/dashboard/options.ts'
import { silent } from '../../../support/silent.ts'

const largest = 1_048_576

/** Makes a request whose body arrives in parts, without a declared length. */
const formOf = (...parts: readonly Uint8Array[]): Request =>
  new Request('http://127.0.0.1/replay', {
    method: 'POST',
    body: new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(part)
        controller.close()
      },
    }),
    duplex: 'half',
  } as RequestInit)

const encoder = new TextEncoder()

test('a form without a declared length is read up to 1 MiB', async () => {
  const whole = encoder.encode(`key=${'a'.repeat(largest - 4)}`)
  expect((await readForm(formOf(whole.slice(0, 9), whole.slice(9)))).get('key')).toHaveLength(largest - 4)
  const tooLarge = expect.objectContaining({ code: 'too_large' })
  await expect(readForm(formOf(whole, encoder.encode('b')))).rejects.toEqual(tooLarge)
})

test('a form of a declared length of more than 1 MiB is rejected before it is read', async () => {
  const declaring = (length: number) =>
    new Request('http://127.0.0.1/', { method: 'POST', headers: { 'content-length': `${length}` }, body: 'key=a' })
  expect((await readForm(declaring(largest))).get('key')).toBe('a')
  await expect(readForm(declaring(largest + 1))).rejects.toMatchObject({ code: 'too_large' })
})

test('a character that arrives in two parts is one character', async () => {
  const bytes = encoder.encode('key=é€')
  const parts = Array.from(bytes, (byte) => Uint8Array.of(byte))
  expect((await readForm(formOf(...parts))).get('key')).toBe('é€')
  expect((await readForm(formOf(bytes.slice(0, -1)))).get('key')).toBe('é\ufffd')
})

function nodeRequest(url: string): NodeRequest {
  return { method: 'GET', url, headers: { host: 'ops.example' }, socket: {}, async *[Symbol.asyncIterator]() {} }
}

test.each([
  ['/inbox/events?state=dead', '/inbox/events?state=dead'],
  ['http://other.example/inbox/events?state=dead', '/inbox/events?state=dead'],
  ['HTTPS://other.example:8080/inbox?back=http://x/y', '/inbox?back=http://x/y'],
  ['http://other.example?state=dead', '/?state=dead'],
])('the address %s is read as a path of the own host', async (url, path) => {
  const asked: string[] = []
  const response = { writeHead() {}, end() {} } as unknown as NodeResponse
  const answer = async (request: Request) => {
    asked.push(request.url)
    return new Response()
  }
  await answerNode(answer, nodeRequest(url), response, silent)
  expect(asked).toEqual([`http://ops.example${path}`])
})

test('what is sent line by line is no longer read once the client has gone', async () => {
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(encoder.encode('{}\n')),
    cancel() {
      isCancelled = true
    },
  })
  let close = () => {}
  const response = {
    destroyed: false,
    writeHead() {},
    write: () => {
      queueMicrotask(close)
      return false
    },
    end() {},
    once(name: string, listener: () => void) {
      if (name === 'close') close = listener
    },
  } as unknown as NodeResponse
  const answer = async () => new Response(body, { headers: { 'content-type': linesType } })
  await answerNode(answer, nodeRequest('/dead-letters.jsonl'), response, silent)
  expect(isCancelled).toBe(true)
})
