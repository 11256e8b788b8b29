import { randomUUID } from 'node:crypto'
import { Copyable, Fact, Facts } from './elements.tsx'
import { addressOf, type View } from './view.ts'

/** What came of an action. */
export interface Notice {
  readonly text: string
  /** To be copied. */
  readonly values?: readonly { readonly name: string; readonly value: string }[]
}

/** How many can wait to be shown: an answer is a redirection, and a browser may never follow it. */
const most = 100

/** Keeps what came of an action from its answer, which is a redirection, to the page that is asked for next. */
export class Notices {
  readonly #waiting = new Map<string, Notice>()

  /** @returns what it is taken with */
  leave(notice: Notice): string {
    const id = randomUUID()
    this.#waiting.set(id, notice)
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size > most && oldest !== undefined) this.#waiting.delete(oldest)
    return id
  }

  /** Gives it once. */
  take(id = ''): Notice | undefined {
    const notice = this.#waiting.get(id)
    this.#waiting.delete(id)
    return notice
  }
}

/** What came of the last action. It is there when there is nothing to tell too, so that news in it is read out. */
export function NoticeLine({ notice, view }: { notice: Notice | undefined; view: View }) {
  return (
    <div id="notice" role="status" tabindex={-1}>
      {notice && (
        <div class="notice card row">
          <p>
            <span aria-hidden="true">✓</span> {notice.text}
          </p>
          {notice.values && (
            <Facts>
              {notice.values.map(({ name, value }) => (
                <Fact name={name}>
                  <Copyable text={value} label={name} />
                </Fact>
              ))}
            </Facts>
          )}
          <a href={addressOf(view)}>Dismiss</a>
        </div>
      )}
    </div>
  )
}
