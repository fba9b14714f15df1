export default function Lineage() {
  return <h1>Lineage</h1>;
}
