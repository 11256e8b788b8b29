import { crypto } from '../realm.ts'
import { Copyable, Fact, Facts } from './elements.tsx'

/** The result of an action, shown once. */
export interface Notice {
  readonly text: string
  /** Not everything was done. */
  readonly failed?: boolean
  readonly more?: { readonly text: string; readonly address: string } | undefined
  readonly values?: readonly { readonly name: string; readonly value: string }[]
}

/** Maximum of notices held: a browser may never follow the redirect that shows one. */
const limit = 100

/** Carries notices across the redirect from an action to the page that shows its result. */
export class Notices {
  readonly #waiting = new Map<string, Notice>()

  leave(notice: Notice): string {
    const id = crypto.randomUUID()
    this.#waiting.set(id, notice)
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size > limit && oldest !== undefined) this.#waiting.delete(oldest)
    return id
  }

  take(id = ''): Notice | undefined {
    const notice = this.#waiting.get(id)
    this.#waiting.delete(id)
    return notice
  }
}

interface NoticeLineProps {
  readonly notice: Notice | undefined
  /** URL of the same view without the notice. */
  readonly dismissed: string
}

/** The last result. Rendered even when empty: screen readers announce changes to existing elements only. */
export function NoticeLine({ notice, dismissed }: NoticeLineProps) {
  return (
    <div id="notice" role="status" tabindex={-1}>
      {notice && (
        <div class={`notice card row ${notice.failed ? 'failed' : ''}`}>
          <p>
            <span aria-hidden="true">{notice.failed ? '✕' : '✓'}</span> {notice.text}
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
          {notice.more && <a href={notice.more.address}>{notice.more.text}</a>}
          <a href={dismissed}>Dismiss</a>
        </div>
      )}
    </div>
  )
}
