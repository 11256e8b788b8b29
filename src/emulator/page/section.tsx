import type { PropsWithChildren } from 'hono/jsx'
import type { Change } from '../shared/changes.ts'

interface SectionProps {
  readonly id: string
  readonly title: string
  /** What it shows: the script asks for it again when one of these changes. */
  readonly of: readonly Change['of'][]
}

/** A part of the page that is kept up to date on its own. */
export function Section({ id, title, of, children }: PropsWithChildren<SectionProps>) {
  return (
    <section id={id} data-of={of.join(' ')} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} tabindex={-1}>
        {title}
      </h2>
      {children}
    </section>
  )
}
