import type { PropsWithChildren } from 'hono/jsx'

interface SectionProps {
  readonly id: string
  readonly title: string
  /** Kinds of things shown. The script reloads the section when one of them changes. */
  readonly shows?: readonly string[]
}

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
