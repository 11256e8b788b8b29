import { Copyable } from './copyable.tsx'
import { Fact, Facts } from './facts.tsx'
import type { Notice } from './notices.ts'
import { addressOf, type View } from './view.ts'

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
