import { durationText } from '../../../internal/duration.ts'
import { CopyButton } from '../../../internal/page/elements.tsx'
import { withRefusedHint } from '../../../internal/refused.ts'
import type { Answer, DeliveryRecord, SentRequest } from '../sending/sending.ts'
import { toCurl } from './curl.ts'
import { Moment } from './elements.tsx'

interface DeliveryProps {
  readonly id: string
  readonly delivery: DeliveryRecord
  /** The sending's first delivery: shown whole, the others as a diff. */
  readonly first: DeliveryRecord | undefined
}

export function Delivery({ id, delivery, first }: DeliveryProps) {
  const { attempt, copy, request, startedAt, durationMs, answer, failure } = delivery
  return (
    <li id={id} class="delivery spaced">
      <h3>
        Delivery {attempt}
        {copy && ', copy'} <Moment at={startedAt} precise />
      </h3>
      <p>
        {failure ? `✕ ${withRefusedHint(failure.message)}` : `✓ acknowledged with ${answer?.status}`} after{' '}
        {durationText(durationMs)}
      </p>
      <p>{whatFollows(delivery)}</p>
      {delivery === first || first === undefined ? (
        <WholeRequest id={id} request={request} />
      ) : (
        <ChangedRequest id={id} request={request} first={first.request} />
      )}
      {answer && <AnswerDetail id={id} answer={answer} />}
    </li>
  )
}

function WholeRequest({ id, request }: { id: string; request: SentRequest }) {
  const curl = toCurl(request)
  return (
    <>
      <h4>Request</h4>
      <pre>{[`POST ${request.url}`, ...headerLines(request.headers)].join('\n')}</pre>
      <Body id={`${id}-request`} body={request.body} />
      <details id={`${id}-curl`}>
        <summary>As curl</summary>
        <pre>{curl}</pre>
        <CopyButton text={curl} label="the curl command" />
      </details>
    </>
  )
}

interface ChangedRequestProps {
  readonly id: string
  readonly request: SentRequest
  readonly first: SentRequest
}

function ChangedRequest({ id, request, first }: ChangedRequestProps) {
  const had = new Set(headerLines(first.headers))
  const changed = headerLines(request.headers).filter((line) => !had.has(line))
  if (request.url !== first.url) changed.unshift(`POST ${request.url}`)
  const sameBody = request.body === first.body
  if (changed.length === 0 && sameBody) return <p class="quiet">The request is the same as in delivery 1.</p>
  return (
    <>
      <h4>Request, as far as it differs from delivery 1</h4>
      {changed.length > 0 && <pre>{changed.join('\n')}</pre>}
      {!sameBody && <Body id={`${id}-request`} body={request.body} />}
    </>
  )
}

function AnswerDetail({ id, answer: { status, headers, body } }: { id: string; answer: Answer }) {
  return (
    <>
      <h4>Answer</h4>
      <pre>{[status, ...headerLines(headers)].join('\n')}</pre>
      {body === '' ? <p class="quiet">The answer has no body.</p> : <Body id={`${id}-answer`} body={body} />}
    </>
  )
}

/** A body. JSON is indented, with the exact bytes beside it. */
function Body({ id, body }: { id: string; body: string }) {
  const indented = indentedJson(body)
  return (
    <>
      <pre>{indented ?? body}</pre>
      {indented !== undefined && (
        <details id={`${id}-bytes`}>
          <summary>Exact bytes</summary>
          <pre>{body}</pre>
        </details>
      )}
    </>
  )
}

function indentedJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return undefined
  }
}

const headerLines = (headers: Readonly<Record<string, string>>): string[] =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`)

function whatFollows({ failure, startedAt, durationMs, retryInMs }: DeliveryRecord) {
  if (failure === undefined) return null
  if (retryInMs === undefined) return 'The sender gave up: it does not send the event again.'
  return (
    <>
      The event is sent again {durationText(retryInMs)} later, at{' '}
      <Moment at={new Date(startedAt.getTime() + durationMs + retryInMs)} />.
    </>
  )
}
