import type { PropsWithChildren } from 'hono/jsx'

interface SectionProps {
  readonly id: string
  readonly title: string
  /** The kinds of things that it shows. A script can reload the section when one of them changes. */
  readonly shows?: readonly string[]
}

/** A part of a page, with a heading. */
export function Section({ id, title, shows, children }: PropsWithChildren<SectionProps>) {
  return (
    <section id={id} data-shows={shows?.join(' ')} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} tabindex={-1}>
        {title}
      </h2>
      {children}
    </section>
  )
}
