import { TextDecoder } from '../../../internal/realm.ts'
import { encoder } from '../../../internal/utf8.ts'
import { headed, linesType, plain } from '../access/respond.ts'
import { failuresOf } from '../reading/causes.ts'
import { matchesFilter, readDeadFilter } from '../reading/dead-filter.ts'
import { eachDeadLetter, eachEvent } from '../reading/each.ts'
import { contains } from '../reading/titled.ts'
import type { Subject } from '../subject.ts'
import type { PageState } from './page-state.ts'

const pageSize = 100

/** Streams the filtered dead letters as JSON lines, newest first. */
export async function exportDeadLetters({ subject, query }: PageState): Promise<Response> {
  // Fails with a status if the inbox is unreachable. Once the stream starts it is too late.
  await subject.inbox.stats()
  return download('dead-letters', deadLines(subject, query))
}

/** Streams the filtered events as JSON lines, newest first. */
export async function exportEvents({ subject, query }: PageState): Promise<Response> {
  if (subject.inbox.events === undefined) return plain(404, 'This inbox cannot list its events.')
  await subject.inbox.stats()
  return download('events', eventLines(subject, query))
}

async function* deadLines({ inbox, redaction }: Subject, query: URLSearchParams) {
  const filter = readDeadFilter(query)
  for await (const deadLetter of eachDeadLetter(inbox)) {
    if (!matchesFilter(deadLetter, filter, redaction)) continue
    const { key, event, unreadable, receivedAt, diedAt, attempts, completed } = deadLetter
    const of = { key, type: event?.type, mediaId: event?.mediaId, title: event && redaction.title(event) }
    const payload = event && redaction.payload(event)
    const body = unreadable && encodeBody(redaction.bytes(unreadable))
    yield { ...of, receivedAt, diedAt, attempts, completed, failures: failuresOf(deadLetter), payload, ...body }
  }
}

async function* eventLines({ inbox, redaction }: Subject, query: URLSearchParams) {
  const state = inbox.events?.states.find((each) => each === query.get('state'))
  const type = query.get('type')
  const titlePart = query.get('title')
  const asked = { limit: pageSize, ...(state && { state }), ...(type && { type }) }
  for await (const { event, trace: _, ...record } of eachEvent(inbox, asked)) {
    const title = event && redaction.title(event)
    if (!titlePart || contains(title, titlePart)) yield { ...record, title, payload: event && redaction.payload(event) }
  }
}

/** UTF-8 as text, other bytes in base64. */
function encodeBody(bytes: Uint8Array | undefined): { body: string } | { bodyBase64: string } | undefined {
  if (bytes === undefined) return undefined
  try {
    return { body: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { bodyBase64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')) }
  }
}

/** Pull-based: reads the inbox only as fast as the client receives. */
function download(name: string, lines: AsyncGenerator<object, void>): Response {
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await lines.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`))
    },
    cancel: () => void lines.return(),
  })
  const disposition = `attachment; filename="${name}.jsonl"`
  return new Response(body, { headers: headed({ 'content-type': linesType, 'content-disposition': disposition }) })
}
