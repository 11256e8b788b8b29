interface FieldProps {
  readonly label: string
  readonly name: string
  readonly value?: string | undefined
  readonly placeholder?: string
  readonly inputmode?: 'url' | 'numeric'
  readonly required?: boolean
  readonly maxlength?: number
  /** The signing schemes that it is shown for. */
  readonly schemes?: string
}

/** A line of text to fill in. */
export function Field({ label, schemes, ...input }: FieldProps) {
  return (
    <label class="field" data-schemes={schemes}>
      <span>{label}</span>
      <input type="text" autocomplete="off" spellcheck={false} {...input} />
    </label>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly name: string
  readonly value?: string | undefined
  /** Each with its words, where they differ from it. */
  readonly options: readonly (readonly [value: string, words?: string])[]
  readonly schemes?: string
}

/** One of a few values. The first, unless `value` is among them. */
export function Choice({ label, name, value, options, schemes }: ChoiceProps) {
  const chosen = options.find(([option]) => option === value) ?? options[0]
  return (
    <label class="field" data-schemes={schemes}>
      <span>{label}</span>
      <select name={name}>
        {options.map((option) => (
          <option value={option[0]} selected={option === chosen}>
            {option[1] ?? option[0]}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Yes or no. */
export function Tick({ label, name, checked }: { label: string; name: string; checked: boolean }) {
  return (
    <label class="tick">
      <input type="checkbox" name={name} checked={checked} />
      <span>{label}</span>
    </label>
  )
}
