import type { DeliveryRecord } from '../sending/sending.ts'
import { duration, Moment } from './moment.tsx'

/** One delivery: what was sent, what came back, and what follows. */
export function Delivery({ delivery }: { delivery: DeliveryRecord }) {
  const { attempt, request, startedAt, durationMs, answer, failure } = delivery
  return (
    <li class="delivery spaced">
      <h4>
        Delivery {attempt} <Moment at={startedAt} precise />
      </h4>
      <p>
        {failure ? `✕ ${failure.message}` : `✓ acknowledged with ${answer?.status}`} after {duration(durationMs)}
      </p>
      <p>{whatFollows(delivery)}</p>
      <h5>Request</h5>
      <pre>
        {[
          `POST ${request.url}`,
          ...Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`),
          '',
          request.body,
        ].join('\n')}
      </pre>
      {answer && (
        <>
          <h5>Answer</h5>
          <pre>{answer.body === '' ? `${answer.status}, without a body` : `${answer.status}\n\n${answer.body}`}</pre>
        </>
      )}
    </li>
  )
}

function whatFollows({ failure, startedAt, durationMs, retryInMs }: DeliveryRecord) {
  if (failure === undefined) return null
  if (retryInMs === undefined) return 'It was given up: no delivery follows.'
  return (
    <>
      So it is sent again {duration(retryInMs)} later, at{' '}
      <Moment at={new Date(startedAt.getTime() + durationMs + retryInMs)} />.
    </>
  )
}
