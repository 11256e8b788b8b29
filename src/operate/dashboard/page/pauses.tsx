import { knownHandlers } from '../../../inbox/operations/paused.ts'
import type { Pause } from '../../../inbox/reading.ts'
import { Field } from '../../../internal/page/fields.tsx'
import { Section } from '../../../internal/page/section.tsx'
import { cut, Foreign, PostForm } from './elements.tsx'
import type { PageState } from './page-state.ts'
import { Ago } from './times.tsx'

/** Current pauses, at the top of every page. */
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
                <strong>This inbox is paused</strong>: deliveries are accepted, but no event is handled.
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
            hidden={{ back: page.here, ...(handler === undefined ? { scope: 'inbox' } : { handler }) }}
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

const shownHandlers = 12

export async function PauseForms({ page }: { page: PageState }) {
  const { inbox } = page.subject
  if (inbox.pauses === undefined || !page.mayAct) return null
  const paused = (await page.pauses()).map(({ handler }) => handler)
  // Skip names too long for a button.
  const isOffered = (name: string) => cut(name, 60) === name && !paused.includes(name)
  const names = (await knownHandlers(inbox)).filter(isOffered).slice(0, shownHandlers)
  return (
    <Section id="pause" title="Pause">
      <div class="row pauses">
        {!paused.includes(undefined) && (
          <PostForm page={page} action="pause" hidden={{ scope: 'inbox', back: page.here }}>
            <button type="submit">Pause the inbox</button>
          </PostForm>
        )}
        {names.length > 0 && (
          <PostForm page={page} action="pause" hidden={{ back: page.here }}>
            {names.map((name) => (
              <button type="submit" name="handler" value={name}>
                Pause {name}
              </button>
            ))}
          </PostForm>
        )}
        <PostForm page={page} action="pause" hidden={{ back: page.here }}>
          <Field label="Another handler" name="other" required />
          <button type="submit">Pause it</button>
        </PostForm>
      </div>
    </Section>
  )
}
