import { knownHandlers } from '../../inbox/operations/paused.ts'
import type { Pause } from '../../inbox/reading.ts'
import { Choice, Field } from '../../page/fields.tsx'
import { Section } from '../../page/section.tsx'
import { cut, Foreign, PostForm } from './elements.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

/** What is paused, at the top of every page. */
export function PauseLines({ page, pauses }: { page: PageState; pauses: readonly Pause[] }) {
  if (pauses.length === 0) return null
  return (
    <section id="paused" class="card" aria-label="Paused">
      {pauses.map(({ handler, since, by }) => (
        <div class="row">
          <p>
            <span aria-hidden="true">‖</span>{' '}
            {handler === undefined ? (
              <>
                <strong>This inbox is paused</strong>: deliveries are accepted, and no event is handled.
              </>
            ) : (
              <>
                The handler{' '}
                <strong>
                  <Foreign text={handler} longest={60} />
                </strong>{' '}
                is paused: its events wait.
              </>
            )}{' '}
            <span class="quiet">
              Since <Ago at={since} now={page.now} />
              {by !== undefined && (
                <>
                  , by <Foreign text={by} longest={60} />
                </>
              )}
            </span>
          </p>
          <PostForm
            page={page}
            action="resume"
            hidden={{ scope: handler === undefined ? 'inbox' : 'handler', handler: handler ?? '', back: page.here }}
          >
            <button type="submit" aria-label={`Resume ${handler === undefined ? 'the inbox' : cut(handler, 60)}`}>
              Resume
            </button>
          </PostForm>
        </div>
      ))}
    </section>
  )
}

/** Maximum number of handlers to choose from. */
const shownHandlers = 30

/** The forms that pause the inbox, or one of its handlers. They are absent for a reader who may not act. */
export async function PauseForms({ page }: { page: PageState }) {
  const { inbox } = page.subject
  if (inbox.pauses === undefined || !page.mayAct) return null
  // A longer name would be cut.
  const names = (await knownHandlers(inbox)).filter((name) => cut(name, 60) === name).slice(0, shownHandlers)
  return (
    <Section id="pause" title="Pause">
      <p class="quiet">
        During a pause, deliveries are accepted and stored. Every process obeys it, also after a restart.
      </p>
      <div class="row">
        <PostForm page={page} action="pause" hidden={{ scope: 'inbox', back: page.here }}>
          <button type="submit">Pause the inbox</button>
        </PostForm>
        <PostForm page={page} action="pause" hidden={{ scope: 'handler', back: page.here }}>
          <Choice label="Handler" name="handler" options={[...names, ['', 'another:']]} />
          <Field label="Another name" name="other" />
          <button type="submit">Pause the handler</button>
        </PostForm>
      </div>
    </Section>
  )
}
