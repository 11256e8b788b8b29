import { WebhookError } from '../../../errors.ts'
import type { Answer, PageState } from './page-state.ts'

export const notFound = (page: PageState): Answer => ({
  title: 'Page not found',
  status: 404,
  body: (
    <p>
      Go to the <a href={page.at('')}>overview</a>.
    </p>
  ),
})

const headings: Readonly<Record<number, string>> = {
  400: 'Invalid request',
  413: 'Too many at once',
  500: 'This page has a fault',
  503: 'The inbox cannot be reached',
}

export const failure = (page: PageState, error: unknown, status: number): Answer => ({
  title: status === 500 && error instanceof WebhookError ? 'The form did not arrive' : (headings[status] ?? 'Error'),
  status,
  body: (
    <div class="card failure">
      {error instanceof WebhookError && <p class="form-error">{error.message}</p>}
      {status === 500 && !(error instanceof WebhookError) && (
        <p>The fault is in this page, and not in your inbox. The log of this process has it: please report it.</p>
      )}
      {status === 503 ? (
        <>
          <p>No event is lost: what was accepted stays stored. For details, see the log of this process.</p>
          <p>This page retries every few seconds. Without JavaScript, reload it.</p>
        </>
      ) : (
        <p>
          Go to the <a href={page.at('')}>overview</a>.
        </p>
      )}
    </div>
  ),
})
