import type { Pause } from '../../../inbox/reading.ts'
import { NoticeLine } from '../../../internal/page/notices.tsx'
import { Connection, Shell } from '../../../internal/page/shell.tsx'
import { makeAddress } from '../acting/place.ts'
import type { Answer, PageState } from './page-state.ts'
import { PauseLines } from './pauses.tsx'

interface DocumentProps {
  readonly page: PageState
  readonly answer: Answer
  readonly pauses: readonly Pause[]
  /** Overdue expectations whose event is not known to have come. */
  readonly missing: number
}

export function Document({ page, answer, pauses, missing }: DocumentProps) {
  const { events, expected } = page.subject.inbox
  const tabs: readonly [route: string, name: string, isShown?: boolean][] = [
    ['', 'Overview'],
    ['events', 'Events', events !== undefined],
    ['dead-letters', 'Dead letters'],
    ['expected', 'Expected', expected !== undefined],
  ]
  return (
    <Shell
      title={`${answer.title} – Inbox`}
      assets={page.at('').replace(/\/$/, '')}
      skipTo={['main', 'the content']}
      refreshes={answer.changes}
    >
      <header>
        <div class="row">
          <p class="brand">
            Inbox{' '}
            <span class="quiet">
              {page.subject.name}
              {!page.mayAct && ', read only'}
            </span>
          </p>
          <Connection />
        </div>
        <div class="row bar">
          <nav aria-label="Pages" class="row">
            {tabs.map(
              ([route, name, isShown = true]) =>
                isShown && (
                  <a href={page.at(route)} aria-current={page.route === route ? 'page' : undefined}>
                    {name}
                    {route === 'expected' && missing > 0 && (
                      <span class="bad">
                        {' '}
                        {missing} <span class="unseen">overdue</span>
                      </span>
                    )}
                  </a>
                ),
            )}
          </nav>
          <Search page={page} />
        </div>
      </header>
      <PauseLines page={page} pauses={pauses} />
      <NoticeLine notice={page.notice} dismissed={makeAddress(page, page.here)} />
      <main id="main" tabindex={-1} data-still={answer.still ? '' : undefined}>
        <h1 tabindex={-1} data-heading>
          {answer.title}
        </h1>
        {answer.body}
      </main>
      <footer class="quiet" data-zone>
        Times are in UTC.
      </footer>
    </Shell>
  )
}

function Search({ page }: { page: PageState }) {
  return (
    <search>
      <form method="get" action={page.at('find')} id="search" class="inline">
        <label class="unseen" for="q">
          Media id or event key
        </label>
        <input
          type="search"
          id="q"
          name="q"
          placeholder="Media id or event key"
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit">Find</button>
      </form>
    </search>
  )
}
