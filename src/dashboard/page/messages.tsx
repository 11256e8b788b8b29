import { WebhookError } from '../../errors.ts'
import type { Answer, PageState } from './page-state.ts'

/** Says that there is no page at an address. */
export const notFound = (page: PageState): Answer => ({
  title: 'There is no such page',
  status: 404,
  body: (
    <p>
      Go to the <a href={page.at('')}>overview</a>.
    </p>
  ),
})

const headings: Readonly<Record<number, string>> = {
  400: 'This cannot be shown',
  413: 'Too many at once',
  500: 'The form did not arrive',
  503: 'The inbox cannot be reached',
}

/** Says why a page cannot be shown. */
export const failure = (page: PageState, error: unknown, status: number): Answer => ({
  title: headings[status] ?? 'This did not work',
  status,
  body: (
    <div class="card failure">
      {error instanceof WebhookError && <p class="form-error">{error.message}</p>}
      {status === 503 ? (
        <>
          <p>Nothing is lost: events stay where they are stored. The log of this process says more.</p>
          <p>This page asks again every few seconds. Without JavaScript, reload it.</p>
        </>
      ) : (
        <p>
          Go to the <a href={page.at('')}>overview</a>.
        </p>
      )}
    </div>
  ),
})
