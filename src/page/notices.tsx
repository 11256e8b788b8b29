import { Copyable, Fact, Facts } from './elements.tsx'

/** The result of an action, to show once. */
export interface Notice {
  readonly text: string
  /** `true` if not everything was done. */
  readonly failed?: boolean
  /** A link to more about it. */
  readonly more?: { readonly text: string; readonly address: string } | undefined
  /** Values that the user can copy. */
  readonly values?: readonly { readonly name: string; readonly value: string }[]
}

/** Maximum number of notices that are kept. A browser may never follow the redirect that shows one. */
const limit = 100

/** Keeps notices between an action, which is answered with a redirect, and the page that shows its result. */
export class Notices {
  readonly #waiting = new Map<string, Notice>()

  /** @returns an id for `take` */
  leave(notice: Notice): string {
    const id = crypto.randomUUID()
    this.#waiting.set(id, notice)
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size > limit && oldest !== undefined) this.#waiting.delete(oldest)
    return id
  }

  /** Returns a notice and forgets it. */
  take(id = ''): Notice | undefined {
    const notice = this.#waiting.get(id)
    this.#waiting.delete(id)
    return notice
  }
}

interface NoticeLineProps {
  readonly notice: Notice | undefined
  /** The address of the same view without the notice. */
  readonly dismissed: string
}

/**
 * The result of the last action. The element also exists without a notice, so that screen readers announce a new one.
 */
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
